package chaos

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/mcptest"
)

// badServer is an MCP server that misbehaves, with its expected answers.
type badServer struct {
	mode string
	opts []mcptest.Option
	ends []int
	// most limits the number of calls to it, if each is expensive. 0 means no limit.
	most int
}

// badServers returns one server for each kind of misbehavior. They run under the same workers
// as the good servers.
func badServers(dir string) map[string]badServer {
	const ok, broken, away, unknown = http.StatusOK, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout
	return map[string]badServer{
		"never-ready":  {mode: mcptest.Silent, ends: []int{away, broken}},
		"exits":        {mode: mcptest.Exit, ends: []int{away, broken}},
		"slow-start":   {mode: mcptest.SlowStart, ends: []int{ok, away, broken, unknown}},
		"never-said":   {mode: mcptest.MuteCalls, ends: []int{unknown, away}},
		"garbage":      {mode: mcptest.Garbage, ends: []int{ok}},
		"flood":        {mode: mcptest.Garbage, opts: []mcptest.Option{mcptest.Flood()}, ends: []int{ok, unknown, away, broken}},
		"huge":         {mode: mcptest.Huge, ends: []int{broken, unknown, away}, most: 3},
		"deep":         {mode: mcptest.Deep, ends: []int{ok, broken}},
		"wrong-id":     {mode: mcptest.WrongID, ends: []int{unknown, away}},
		"twice":        {mode: mcptest.DuplicateAnswers, ends: []int{ok}},
		"half-line":    {mode: mcptest.HalfLine, ends: []int{unknown, away}},
		"grandchild":   {mode: mcptest.Grandchild, opts: []mcptest.Option{mcptest.PIDFile(filepath.Join(dir, "grandchildren"))}, ends: []int{ok}},
		"ignores-end":  {mode: mcptest.IgnoreEOF, ends: []int{ok}},
		"odd-content":  {mode: mcptest.UnknownContent, ends: []int{ok, broken}},
		"other-schema": {mode: mcptest.SchemaChange, ends: []int{ok, http.StatusUnprocessableEntity}},
	}
}

const (
	badTimeout = "1000" // timeout of a call to a bad server, in milliseconds
	badPause   = 20 * time.Millisecond
)

// disturb calls every bad server, one call after the other, until the load has ended.
func (r *run) disturb(ctx context.Context) {
	var wait sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]map[int]int{}
	for name, bad := range r.f.bad {
		seen[name] = map[int]int{}
		wait.Go(func() {
			c := newClient(r.f, 0)
			defer c.close()
			for n := 0; bad.most == 0 || n < bad.most; n++ {
				a, err := c.send(ctx, http.MethodPost, "/servers/"+name+"/tools/echo", `{"text":"x"}`, "Callyard-Timeout-Ms: "+badTimeout)
				switch {
				case ctx.Err() != nil:
					return
				case err != nil:
					r.book.find("a call of the bad server %s got no answer: %v", name, err)
				case !slices.Contains(bad.ends, a.status):
					r.book.find("a call of the bad server %s was answered with %s: %.200s", name, a, a.body)
				}
				mu.Lock()
				seen[name][a.status]++
				mu.Unlock()
				if !rest(ctx, badPause) {
					return
				}
			}
		})
	}
	wait.Wait()
	for name, answers := range seen {
		if len(answers) == 0 {
			r.book.find("no call of the bad server %s has ended", name)
		}
		for status, n := range answers {
			r.report.Disturbed += n
			r.c.Log.Info("calls of a bad server", "server", name, "status", status, "calls", n)
		}
	}
}

// environ returns the environment of a bad server.
func (b badServer) environ() map[string]string { return mcptest.Env(b.mode, b.opts...) }
