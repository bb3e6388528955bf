package mcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

const (
	manyServers = 200
	manyEach    = 25
)

// addManyServers adds servers with many tools to the worker, in one announcement.
func (f *fabric) addManyServers() {
	f.t.Helper()
	all := make(map[schema.ServerID]schema.Definitions)
	for n := range manyServers {
		all[manyServerID(n)] = manyServerTools(n, "")
	}
	f.Worker.Define(all, func(s *schema.Server) { s.Risk = 1 })
	f.WaitFor("the tools of the crowd", func() bool { return f.crowded() == manyServers*manyEach })
}

func manyServerID(n int) schema.ServerID { return schema.ServerID(fmt.Sprintf("crowd-%03d", n)) }

func manyServerTools(n int, more string) (defs schema.Definitions) {
	for i := range manyEach {
		defs.Tools = append(defs.Tools, raw(fmt.Sprintf(`{"name":"echo_%02d","description":"number %d of %d%s","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}`, i, i, n, more)))
	}
	return defs
}

// crowded returns the number of offered tools of these servers.
func (f *fabric) crowded() (n int) {
	for name := range f.endpoint.lists.view(place{}).toolOf {
		if strings.HasPrefix(name, "crowd-") {
			n++
		}
	}
	return n
}

func TestFiveThousandToolsAreListedOnceEachAndCalled(t *testing.T) {
	f := openFabric(t, quiet)
	f.addManyServers()
	seen := make(map[string]bool)
	pages, cursor := 0, ""
	for {
		members := ""
		if cursor != "" {
			members = fmt.Sprintf(`"cursor":%q`, cursor)
		}
		page := []byte(f.ask("/mcp", "tools/list", "", members).result(t))
		pages++
		var tools []json.RawMessage
		if err := json.Unmarshal(get(page, "tools"), &tools); err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools {
			name := getString(tool, "name")
			if seen[name] {
				t.Errorf("%s is listed twice", name)
			}
			seen[name] = true
		}
		if cursor = getString(page, "nextCursor"); cursor == "" {
			break
		}
		if len(tools) != pageSize {
			t.Errorf("page %d has %d tools", pages, len(tools))
		}
	}
	if pages < manyServers*manyEach/pageSize {
		t.Errorf("%d pages", pages)
	}
	for n := range manyServers {
		for i := range manyEach {
			if name := fmt.Sprintf("%s__echo_%02d", manyServerID(n), i); !seen[name] {
				t.Fatalf("%s is not listed", name)
			}
		}
	}
	for _, n := range []int{0, 99, manyServers - 1} {
		if got := f.call("/mcp", string(manyServerID(n))+"__echo_24", `{"text":"a"}`).result(t); !strings.Contains(got, `"got":{"text":"a"}`) || f.Worker.Last().Server != manyServerID(n) {
			t.Errorf("%s went to %s", got, f.Worker.Last().Server)
		}
	}
}

func TestToolListIsEncodedOnceAndRebuiltPerServer(t *testing.T) {
	f := openFabric(t, quiet)
	f.addManyServers()
	before := f.endpoint.lists.view(place{})
	f.ask("/mcp", "tools/list", "", "").result(t)
	if again := f.endpoint.lists.view(place{}); &again.tools.pages[0][0] != &before.tools.pages[0][0] {
		t.Error("the list was encoded again, and nothing had changed")
	}
	f.define(manyServerID(7), manyServerTools(7, ", changed"))
	f.WaitFor("the changed tools", func() bool {
		return strings.Contains(string(slices.Concat(f.endpoint.lists.view(place{}).tools.pages...)), "number 0 of 7, changed")
	})
	pieceOf := func(v *view) map[schema.ServerID]*serverLists {
		all := make(map[schema.ServerID]*serverLists)
		for _, p := range v.servers {
			all[p.server] = p
		}
		return all
	}
	was, is := pieceOf(before), pieceOf(f.endpoint.lists.view(place{}))
	for n := range manyServers {
		if id := manyServerID(n); (was[id] != is[id]) != (n == 7) {
			t.Errorf("%s was read again: %v", id, was[id] != is[id])
		}
	}
}

func TestACallTakesNoLongerAmongFiveThousandTools(t *testing.T) {
	few, many := openFabric(t, quiet), openFabric(t, quiet)
	many.addManyServers()
	// Alternate between both, so that other load on the machine slows both.
	const turns = 150
	took := make(map[*fabric][]time.Duration)
	for range turns {
		for _, f := range []*fabric{few, many} {
			began := time.Now()
			f.call("/mcp", "demo__echo", `{"text":"a"}`).result(t)
			took[f] = append(took[f], time.Since(began))
		}
	}
	median := func(f *fabric) time.Duration {
		slices.Sort(took[f])
		return took[f][turns/2]
	}
	// A lookup that scans all tools would take hundreds of times as long.
	if a, b := median(few), median(many); b > 20*a+20*time.Millisecond {
		t.Errorf("a call takes %v among a few tools and %v among thousands", a, b)
	}
}
