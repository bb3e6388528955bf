package rest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/frontdoor/rest/tools"
	"github.com/callyard/callyard/pkg/schema"
)

// addManyServers makes the worker announce more servers, each with the definitions of demo, and returns the
// resulting number of tools.
func (f *fabric) addManyServers(servers int) (tools int) {
	f.t.Helper()
	ids := make([]schema.ServerID, servers)
	f.Worker.Change(func(w *schema.Worker) {
		for n := range servers {
			ids[n] = schema.ServerID(fmt.Sprintf("crowd-%03d", n))
			w.Servers = append(w.Servers, schema.Server{
				ID: ids[n], State: schema.StateInitialized, Transport: "stdio", Risk: 1, Digest: schema.Digest([]byte(ids[n])), Slots: 4, Sessions: 1,
			})
		}
	})
	f.WaitFor("the tools of the crowd", func() bool {
		return !slices.ContainsFunc(ids, func(id schema.ServerID) bool {
			_, err := f.Catalog.Tools(id)
			return err != nil
		})
	})
	return (servers + 1) * len(definitions.Tools)
}

// crowdServers is enough for more than 5,000 tools.
const crowdServers = 400

func TestFiveThousandToolsAreListedInPagesOnceEach(t *testing.T) {
	f := openFabric(t, nil)
	want := f.addManyServers(crowdServers)
	seen := make(map[[2]string]bool)
	for cursor := ""; ; {
		var page tools.ToolList
		a := f.do("GET", "/tools?limit=500&cursor="+url.QueryEscape(cursor), "")
		if err := json.Unmarshal(a.body, &page); err != nil || a.status != 200 {
			t.Fatalf("%d %v", a.status, err)
		}
		for _, tool := range page.Tools {
			key := [2]string{string(tool.Server), tool.Name}
			if seen[key] {
				t.Errorf("%v comes twice", key)
			}
			seen[key] = true
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if len(seen) != want {
		t.Errorf("%d tools of %d", len(seen), want)
	}
}

func TestSearchConvertsOnlyTheToolsItReturns(t *testing.T) {
	f := openFabric(t, nil)
	all := f.addManyServers(crowdServers)
	for _, query := range []string{"says it again", "hang", "again"} {
		got := providerList(t, f, "format=openai&max_tools=5&query="+url.QueryEscape(query))
		if got.Count != 5 || got.Omitted != all-5 {
			t.Errorf("%s: %d tools, %d left out", query, got.Count, got.Omitted)
		}
		if shaped := f.api.shapes.Len(); shaped > 3*5 {
			t.Errorf("%s: %d tools were put in the provider's shape", query, shaped)
		}
	}
}

func TestSearchTimeGrowsLinearlyWithTools(t *testing.T) {
	few, many := openFabric(t, nil), openFabric(t, nil)
	few.addManyServers(crowdServers / 10)
	many.addManyServers(crowdServers)
	const turns = 11
	took := make(map[*fabric][]time.Duration)
	for turn := range turns + 1 {
		for _, f := range []*fabric{few, many} { // alternate, so that other load on the machine slows both
			began := time.Now()
			providerList(t, f, "format=openai&max_tools=1&query=says+it+again")
			if turn > 0 { // the first turn fills caches
				took[f] = append(took[f], time.Since(began))
			}
		}
	}
	median := func(f *fabric) time.Duration {
		slices.Sort(took[f])
		return took[f][turns/2]
	}
	a, b := median(few), median(many)
	t.Logf("%v among %d tools, %v among %d", a, crowdServers/10*len(definitions.Tools), b, crowdServers*len(definitions.Tools))
	if b > 60*a+50*time.Millisecond {
		t.Errorf("a search takes %v, and %v among ten times the tools", a, b)
	}
}
