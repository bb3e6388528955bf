package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/backoff"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/kit/sse"
)

func eventsCommand() *cobra.Command {
	var changes bool
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Follow changes of workers and servers until Ctrl-C",
		Long: "events prints the current fleet and then each change, one on a line, until it is stopped. " +
			"With --json each line is the whole fleet after the change. It reconnects after a lost connection.",
		Args: takes(0, 0),
		RunE: withClient(func(ctx context.Context, c *client, _ []string) error {
			f := follower{c: c, changes: changes, pauses: backoff.Policy{First: time.Second, Max: 15 * time.Second}}
			return f.follow(ctx)
		}),
	}
	cmd.Flags().BoolVar(&changes, "changes", false, "also print each change of tools, servers and sets, with actor and reason")
	return cmd
}

// follower prints the events of a front door and reconnects when the connection breaks.
type follower struct {
	c      *client
	pauses backoff.Policy // before reconnecting
	// changes also prints each change separately.
	changes bool
	last    callyard.Fleet
}

// follow runs until ctx ends, which is not an error, or until the front door refuses the request.
// If the first connection fails, it returns an error.
func (f *follower) follow(ctx context.Context) error {
	connected := false
	params := &callyard.GetEventsParams{}
	if f.changes {
		params.Include = new(callyard.GetEventsParamsInclude("changes"))
	}
	for failures := 0; ; failures++ {
		err := f.c.stream(ctx, with(f.c.api.GetEvents, params), func(e sse.Event) error {
			if e.Name == eventJSON || e.Name == eventHeld {
				return f.c.foreign()
			}
			connected, failures = true, 0
			return f.show(e)
		}, accepts(mediaEvents))
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && (!connected || exitCode(err) != exitUnreachable) {
			return err
		}
		if !connected {
			return fail(exitUnreachable, "%s ended the stream of events before the first event: check --url.", f.c.base)
		}
		if err := f.c.note.text("The connection ended; reconnecting.\n"); err != nil {
			return err
		}
		if !sleep.For(f.pauses.Delay(failures), ctx.Done()) {
			return nil
		}
	}
}

// show prints one event: verbatim with --output json, else as the changes since the last one.
func (f *follower) show(e sse.Event) error {
	if f.c.out.structured() {
		var b bytes.Buffer
		if err := json.Compact(&b, e.Data); err != nil {
			return f.c.foreign()
		}
		return f.c.out.entry(b.Bytes())
	}
	if e.Name != "fleet" {
		return f.c.out.text(oneLine(e.Name+" "+string(e.Data)) + "\n")
	}
	var next callyard.Fleet
	if err := json.Unmarshal(e.Data, &next); err != nil {
		return f.c.foreign()
	}
	at := next.At.UTC().Format(time.RFC3339)
	for _, n := range changes(&f.last, &next) {
		if err := f.c.out.text(f.c.out.paint(faint, at) + "  " + f.c.out.paint(n.paint, oneLine(n.text)) + "\n"); err != nil {
			return err
		}
	}
	f.last = next
	return nil
}
