package rest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

func TestSetsAreMadeChangedAndRemovedUnderTheirETags(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	const body = `{"description":"all of demo","include":[{"server":"demo"}],"exclude":[{"tool":"hang*"}],"names":{"prefix":""}}`
	made := f.do("PUT", "/sets/mine", body)
	first := made.header.Get("ETag")
	if made.status != 200 || first == "" {
		t.Fatalf("%d %s", made.status, made.body)
	}
	for what, c := range map[string]struct {
		status int
		method string
		body   string
		header []string
	}{
		"a second one with that name":        {412, "PUT", body, []string{"If-None-Match", "*"}},
		"a change of an unseen state":        {428, "PUT", body, nil},
		"a change of another state":          {412, "PUT", body, []string{"If-Match", `"999999"`}},
		"a tag of nobody":                    {412, "PUT", body, []string{"If-Match", `abc`}},
		"both conditions":                    {400, "PUT", body, []string{"If-Match", first, "If-None-Match", "*"}},
		"another condition":                  {400, "PUT", body, []string{"If-None-Match", `"1"`}},
		"a removal of an unseen state":       {428, "DELETE", "", nil},
		"a removal of another state":         {412, "DELETE", "", []string{"If-Match", `"999999"`}},
		"no selectors":                       {400, "PUT", `{"include":[]}`, []string{"If-Match", first}},
		"an unknown member":                  {400, "PUT", `{"include":[{}],"tools":[]}`, []string{"If-Match", first}},
		"an unknown member inside":           {400, "PUT", `{"include":[{"servers":"x"}]}`, []string{"If-Match", first}},
		"a bad level":                        {400, "PUT", `{"include":[{"max_risk_level":9}]}`, []string{"If-Match", first}},
		"another name in the body":           {400, "PUT", `{"name":"other","include":[{}]}`, []string{"If-Match", first}},
		"a name that no set can have":        {400, "PUT", "", nil},
		"a set that is not there inside":     {400, "PUT", `{"include":[{"set":"gone"}]}`, []string{"If-Match", first}},
		"a removal of one that is not there": {404, "DELETE", "", []string{"If-Match", first}},
	} {
		path := "/sets/mine"
		switch what {
		case "a name that no set can have":
			path, c.body = "/sets/@x", body
		case "a removal of one that is not there":
			path = "/sets/none"
		}
		got := f.do(c.method, path, c.body, c.header...)
		if got.status != c.status {
			t.Errorf("%s: %d %s", what, got.status, got.body)
			continue
		}
		problemOf(t, got)
	}
	if same := f.do("GET", "/sets/mine", ""); same.header.Get("ETag") != first {
		t.Errorf("a refused change changed the set: %s", same.body)
	}
	changed := f.do("PUT", "/sets/mine", `{"include":[{"server":"demo","tool":"echo"}],"names":{"prefix":"my"}}`, "If-Match", first)
	if changed.status != 200 || changed.header.Get("ETag") == first {
		t.Fatalf("%d %s", changed.status, changed.body)
	}
	var detail struct {
		Origin, ETag string
		Tools        []struct{ Name, Server, Tool string }
	}
	got := f.do("GET", "/sets/mine", "")
	if err := json.Unmarshal(got.body, &detail); err != nil || len(detail.Tools) != 1 || detail.Tools[0].Name != "my__echo" || detail.Origin != "api" || detail.ETag != changed.header.Get("ETag") {
		t.Errorf("%s, %v", got.body, err)
	}
	if all := f.do("GET", "/sets", ""); all.status != 200 || !strings.Contains(string(all.body), `"name":"mine"`) {
		t.Errorf("%s", all.body)
	}
	if gone := f.do("DELETE", "/sets/mine", "", "If-Match", "*"); gone.status != 200 {
		t.Errorf("%d %s", gone.status, gone.body)
	}
	if got := f.do("GET", "/sets/mine", ""); got.status != 404 {
		t.Errorf("%d", got.status)
	}
}

func TestSetMemberWithWrongTypeIsReported(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	for body, want := range map[string]string{
		`{"include":"x"}`:                               "include must be an array, not string.",
		`{"include":[{"server":1}]}`:                    "include.server must be a string, not number.",
		`{"include":[{"max_risk_level":"1"}]}`:          "include.max_risk_level must be an integer, not string.",
		`{"include":[{"read_only":"yes"}]}`:             "include.read_only must be true or false, not string.",
		`{"include":[{}],"names":[]}`:                   "names must be an object, not array.",
		`{"include":[{}],"description":{"a":"b"}}`:      "description must be a string, not object.",
		`{"include":[{"server":"demo","servers":"x"}]}`: `unknown field "servers"`,
	} {
		got := f.do("PUT", "/sets/typed", body)
		if got.status != 400 || !strings.Contains(problemOf(t, got).Detail, "The set cannot be read: "+want) {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
}

func TestSetListsUseTheNamesOfTheSet(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	if made := f.do("PUT", "/sets/mine", `{"include":[{"tool":"echo"},{"server":"demo","tool":"fail"}],"names":{"prefix":""}}`); made.status != 200 {
		t.Fatalf("%d %s", made.status, made.body)
	}
	names := func(path string) string {
		t.Helper()
		var list struct {
			Tools []struct {
				SetName string `json:"name_in_set"`
			}
			Names []struct{ Name string }
		}
		got := f.do("GET", path, "")
		if err := json.Unmarshal(got.body, &list); err != nil || got.status != 200 {
			t.Fatalf("%s: %d %s", path, got.status, got.body)
		}
		var all []string
		for _, t := range list.Tools {
			if t.SetName != "" {
				all = append(all, t.SetName)
			}
		}
		for _, n := range list.Names {
			all = append(all, n.Name)
		}
		return strings.Join(all, " ")
	}
	for path, want := range map[string]string{
		"/tools?set=mine": "echo fail", "/tools?set=mine&format=openai": "echo fail", "/tools?set=mine&format=openai&query=echo&max_tools=1": "echo",
		"/tools?set=mine&server=none": "",
	} {
		if got := names(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	const message = `{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"echo","arguments":"{}"}},{"id":"2","type":"function","function":{"name":"demo__large","arguments":"{}"}}]}`
	got := f.do("POST", "/tool-calls?set=mine", message)
	var outcome struct {
		Calls []struct{ State, Server, Tool string }
	}
	if err := json.Unmarshal(got.body, &outcome); err != nil || got.status != 200 || len(outcome.Calls) != 2 || outcome.Calls[0].State != "succeeded" || outcome.Calls[0].Tool != "echo" || outcome.Calls[1].State != "failed" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := f.do("POST", "/tool-calls?set=none", message); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := f.do("PATCH", "/tools", `{"set":"mine","tool":"fail","enabled":false,"reason":"broken"}`); got.status != 200 || !strings.Contains(string(got.body), `"tools":1`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := names("/tools?set=mine"); got != "echo" {
		t.Errorf("a disabled tool is listed: %q", got)
	}
	call := f.do("POST", "/servers/demo/tools/fail/call", `{"arguments":{}}`)
	if call.status != 404 && call.status != 403 {
		t.Errorf("%d %s", call.status, call.body)
	}
	if got := f.do("GET", "/tools/switches", ""); !strings.Contains(string(got.body), `"set":"mine"`) {
		t.Errorf("%s", got.body)
	}
	for body, status := range map[string]int{`{"enabled":false}`: 400, `{"enabled":true,"server":"demo"}`: 404, `{"server":"demo"}`: 400, `{"set":"none","enabled":false}`: 404} {
		if got := f.do("PATCH", "/tools", body); got.status != status {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	// Tools that cannot be called are omitted, unless they are requested.
	f.Worker.Change(func(w *schema.Worker) { w.Servers[0].State, w.Servers[0].Error = "error", "exited" })
	f.WaitFor("the server is offline", func() bool { s, err := f.api.o.Catalog.Server("demo"); return err == nil && s.Offline != "" })
	if got := names("/tools?set=mine"); got != "" {
		t.Errorf("offline tools are listed: %q", got)
	}
	if got := names("/tools?set=mine&include=offline"); got != "echo" {
		t.Errorf("offline tools are not shown: %q", got)
	}
}
