package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/clients/go/batchfile"
)

// missingEvery is the interval at which watch polls for missing servers.
const missingEvery = 2 * time.Second

// batchServers warns once about each server that a batch names and Callyard does not have. The
// calls wait, because a worker may still announce the server. If the name is mistyped, no worker
// will.
type batchServers struct {
	c      *client
	known  []string // fetched once
	warned map[string]bool
}

func newBatchServers(c *client) *batchServers {
	return &batchServers{c: c.quiet(), warned: make(map[string]bool)}
}

// check warns about unknown servers in the lines of a file before they are sent. If Callyard does
// not respond, check prints nothing, because the batch reports that.
func (b *batchServers) check(ctx context.Context, file string, firstLine map[string]int) {
	if !b.ask(ctx) {
		return
	}
	for _, server := range slices.SortedFunc(maps.Keys(firstLine), func(x, y string) int { return firstLine[x] - firstLine[y] }) {
		if !slices.Contains(b.known, server) {
			b.warn(server, fmt.Sprintf("%s:%d:", file, firstLine[server]))
		}
	}
}

// ask fetches the known servers and reports whether it succeeded.
func (b *batchServers) ask(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, suggestFor)
	defer cancel()
	known, err := serverIDs(ctx, b.c, nil)
	if err != nil {
		return false
	}
	b.known = withoutDescriptions(known)
	return true
}

func (b *batchServers) warn(server, place string) {
	if b.warned[server] {
		return
	}
	b.warned[server] = true
	hint := strings.TrimPrefix(didYouMean(server, b.known), ".")
	_ = b.c.note.text(strings.TrimLeft(fmt.Sprintf("%s Callyard has no server %q; its calls wait for a worker that runs it.%s\n", oneLine(place), oneLine(server), hint), " ")) // best effort: not part of the output
}

// watch polls a running batch for the servers that its calls wait for, until ctx ends.
func (b *batchServers) watch(ctx context.Context, id string, show *batchProgress) {
	tick := time.NewTicker(missingEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var now batchfile.Batch
		if _, err := b.c.report(ctx, with(b.c.api.GetBatch, id), &now); err != nil {
			continue // the stream of results reports faults
		}
		if len(now.MissingServers) > 0 && b.known == nil {
			b.ask(ctx)
		}
		show.missing(now.MissingServers, b.warn)
	}
}
