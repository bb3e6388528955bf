package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/tools"
)

func providerList(t *testing.T, f *fabric, query string) tools.ProviderToolList {
	t.Helper()
	a := f.do("GET", "/tools?"+query, "")
	var list tools.ProviderToolList
	if err := json.Unmarshal(a.body, &list); err != nil || a.status != http.StatusOK {
		t.Fatalf("%s: %d %v: %s", query, a.status, err, a.body)
	}
	return list
}

func TestToolsAreListedInEveryProviderFormat(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	f.do("PATCH", "/servers/demo/tools/hang", `{"enabled":false,"reason":"never ends"}`)
	f.WaitFor("the switch", func() bool {
		tool, err := f.api.o.Catalog.Tool("demo", "hang")
		return err == nil && !tool.Switch.Enabled
	})
	for _, name := range []string{"openai", "openai-responses", "anthropic", "gemini"} {
		golden(t, "tools-"+name, f.do("GET", "/tools?server=demo&format="+name, ""))
		list := providerList(t, f, "format="+name)
		if list.Count != len(definitions.Tools)-1 || len(list.Names) != list.Count || list.Tokens < 10*list.Count || !slices.Equal(list.Unknown, []string{"dead", "two words"}) {
			t.Errorf("%s: %d tools, %d names, %d tokens, unknown %v", name, list.Count, len(list.Names), list.Tokens, list.Unknown)
		}
		var calls []string
		for _, n := range list.Names {
			if n.Tool == "hang" {
				t.Errorf("%s lists a tool that is switched off", name)
			}
			calls = append(calls, fmt.Sprintf(`{"id":"c","type":"function","function":{"name":%q,"arguments":"{}"}}`, n.Name))
		}
		_, found := toolCallsOf(t, f, "/tool-calls", `{"tool_calls":[`+strings.Join(calls, ",")+`]}`)
		for i, n := range list.Names {
			if c := found.Calls[i]; c.Server != n.Server || c.Tool != n.Tool {
				t.Errorf("%s: %q is found as %+v", name, n.Name, c)
			}
		}
	}
}

func TestToolsAreChosenByRelevanceNumberAndBudget(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	if got := providerList(t, f, "format=openai&query=says+it+again"); got.Count != 1 || got.Names[0].Tool != "echo" || got.Omitted != len(definitions.Tools)-1 {
		t.Errorf("a query: %+v", got.Names)
	}
	if got := providerList(t, f, "format=openai&max_tools=3"); got.Count != 3 || got.Omitted != len(definitions.Tools)-3 {
		t.Errorf("max_tools: %+v", got.Names)
	}
	all := providerList(t, f, "format=anthropic")
	budget := all.Tokens / 2
	if got := providerList(t, f, "format=anthropic&budget_tokens="+strings.TrimSpace(string(httpapi.Encode(budget)))); got.Tokens > budget || got.Count == 0 || got.Count >= all.Count {
		t.Errorf("a budget of %d: %d tools of %d tokens", budget, got.Count, got.Tokens)
	}
	var page tools.ToolList
	a := f.do("GET", "/tools?query=says+it+again", "")
	if err := json.Unmarshal(a.body, &page); err != nil || len(page.Tools) != 1 || string(page.Tools[0].Definition.RawMessage) == "" || page.Tools[0].Name != "echo" {
		t.Errorf("in the form of MCP: %s", a.body)
	}
	if got := providerList(t, f, "format=gemini&query=zebra"); got.Count != 0 || len(got.Tools) != 0 {
		t.Errorf("nothing is about zebras: %+v", got)
	}
}

func TestInvalidToolListQueriesAreRefused(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	for _, query := range []string{"format=nonsense", "format=openai&cursor=x", "format=gemini&strict=true", "strict=true", "max_tools=-1", "budget_tokens=many", "format=openai&other=1"} {
		if a := f.do("GET", "/tools?"+query, ""); a.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		} else {
			problemOf(t, a)
		}
	}
	if a := f.do("GET", "/tools?format=openai&server=nobody", ""); a.status != http.StatusNotFound {
		t.Errorf("an unknown server: %d", a.status)
	}
}

func TestStrictModeIsUsedWhereItCanBe(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	list := providerList(t, f, "format=openai&strict=true&server=demo")
	for _, n := range list.Names {
		if n.Tool == "strict" && !n.Strict {
			t.Errorf("the tool strict is not strict: %+v", list.Loosened)
		}
	}
	a := f.do("POST", "/tool-calls", `{"tool_calls":[{"id":"a","function":{"name":"demo__strict","arguments":"{\"n\":1,\"s\":null}"}}]}`)
	if a.status != http.StatusOK || string(f.Worker.Last().Payload) != `{"n":1}` {
		t.Errorf("%d %s; the tool got %s", a.status, a.body, f.Worker.Last().Payload)
	}
}
