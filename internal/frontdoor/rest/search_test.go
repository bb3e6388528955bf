package rest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/frontdoor/frontdoortest"
	"github.com/callyard/callyard/internal/frontdoor/rest/tools"
	"github.com/callyard/callyard/pkg/schema"
)

func TestToolsAreSearched(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	var got tools.ToolSearch
	a := f.do(http.MethodGet, "/tools/search?q=echo+klingon&server=demo&limit=1", "")
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if len(got.Tools) != 1 || !strings.HasPrefix(got.Tools[0].Signature, got.Tools[0].Tool+"(") || got.Tools[0].Risk == "" || got.Tools[0].Decision != "run" || len(got.Unmatched) == 0 || got.Searched == 0 {
		t.Errorf("%s", a.body)
	}
	a = f.do(http.MethodGet, "/tools/search?q=zebra", "")
	if !strings.Contains(string(a.body), `"tools":[]`) || !strings.Contains(string(a.body), `"zebra"`) {
		t.Errorf("nothing fits: %s", a.body)
	}
	a = f.do(http.MethodGet, "/tools/search?q="+strings.Repeat("0", 700), "") // too long to be a word of a tool
	if !strings.Contains(string(a.body), `"tools":[],"unmatched":[]`) {
		t.Errorf("a long word: %s", a.body)
	}
	for path, status := range map[string]int{"/tools/search": 400, "/tools/search?q=+": 400, "/tools/search?q=x&server=none": 404, "/tools/search?q=x&set=none": 404, "/tools/search?q=x&limit=0": 400} {
		if a := f.do(http.MethodGet, path, ""); a.status != status {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

func TestPreflightReportsWhatIsNotReady(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	if a := f.do(http.MethodPatch, "/servers/demo/tools/fail", `{"enabled":false,"reason":"closed"}`); a.status != http.StatusOK {
		t.Fatalf("%s", a.body)
	}
	var got tools.Preflight
	a := f.do(http.MethodGet, "/preflight?tool=demo/echo&tool=demo/echo@sha256:other&tool=demo/fail&tool=demo/none&tool=none/x", "")
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	var states []string
	for _, p := range got.Tools {
		states = append(states, p.State)
	}
	if strings.Join(states, " ") != "ready changed disabled missing missing" || got.Ready || !got.Tools[0].Ready || got.Tools[0].Digest == "" {
		t.Errorf("%s", a.body)
	}
	if a := f.do(http.MethodGet, "/preflight?tool=demo/echo@"+got.Tools[0].Digest, ""); !strings.Contains(string(a.body), `"ready":true,"tools"`) {
		t.Errorf("%s", a.body)
	}
	for _, path := range []string{"/preflight", "/preflight?tool=echo", "/preflight?tool=/echo"} {
		if a := f.do(http.MethodGet, path, ""); a.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

func TestPreflightFindsToolsWithAnAtSignInTheirNames(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	f.Worker.Define(map[schema.ServerID]schema.Definitions{"demo": {Tools: frontdoortest.Tools(`{"name":"send@team","inputSchema":{"type":"object"}}`)}}, nil)
	f.WaitFor("the tool", func() bool {
		_, err := f.Catalog.Tool("demo", "send@team")
		return err == nil
	})
	for tool, state := range map[string]string{"send@team": "ready", "send@team@sha256:other": "changed", "send": "missing", "send@sha256:other": "missing"} {
		if a := f.do(http.MethodGet, "/preflight?tool=demo/"+tool, ""); !strings.Contains(string(a.body), `"state":"`+state+`"`) {
			t.Errorf("%s: %s", tool, a.body)
		}
	}
}

func TestAnthropicsToolsAreDeferred(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	a := f.do(http.MethodGet, "/tools?format=anthropic&defer_loading=true&server=demo", "")
	var list struct {
		Tools []struct {
			Defer bool `json:"defer_loading"`
		}
	}
	if err := json.Unmarshal([]byte(a.body), &list); err != nil || len(list.Tools) == 0 {
		t.Fatalf("%s", a.body)
	}
	for _, x := range list.Tools {
		if !x.Defer {
			t.Errorf("%s", a.body)
		}
	}
	for _, format := range []string{"mcp", "openai"} {
		if a := f.do(http.MethodGet, "/tools?defer_loading=true&format="+format, ""); a.status != http.StatusBadRequest {
			t.Errorf("%s: %d", format, a.status)
		}
	}
}
