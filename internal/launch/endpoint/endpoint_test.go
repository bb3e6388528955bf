package endpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch/adapt"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const list = `[
	{"type":"function","function":{"name":"add","description":"Adds.","parameters":{"type":"object","properties":{"a":{"maximum":9007199254740993}}}}},
	{"type":"function","name":"flat","parameters":{"type":"object"}},
	{"type":"function","function":{"name":"bare"}},
	{"type":"function","function":{"name":"add"}},
	{"type":"function","function":{"name":"bad name"}},
	{"type":"web_search"},
	{"type":"function","function":{"name":"odd","parameters":[]}},
	7
]`

// open returns a server whose endpoint answers with what answer makes of the id
// of the call.
func open(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, id string)) *Server {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Calls []struct {
				ID, Type string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &in); err != nil || len(in.Calls) != 1 || in.Calls[0].Type != "function" || in.Calls[0].ID == "" {
			t.Errorf("the endpoint got %s", body)
			return
		}
		if r.Header.Get("Authorization") != "Bearer b" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("the endpoint got the headers %v", r.Header)
		}
		r.Header.Set("Arguments", in.Calls[0].Function.Arguments)
		w.Header().Set("Content-Type", "application/json")
		answer(w, r, in.Calls[0].ID)
	}))
	t.Cleanup(srv.Close)
	s := New(Config{ID: "tools", Endpoint: config.ToolEndpoint{URL: srv.URL, Tools: json.RawMessage(list)}, Headers: map[string]string{"Authorization": "Bearer b"}, MaxResult: 1 << 20})
	t.Cleanup(s.CloseIdle)
	return s
}

func TestListBecomesToolsAndInvalidEntriesAreNoted(t *testing.T) {
	s := open(t, nil)
	o, err := s.Offer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tool := range o.Tools {
		got = append(got, string(tool.Raw))
	}
	want := []string{
		`{"name":"add","description":"Adds.","inputSchema":{"type":"object","properties":{"a":{"maximum":9007199254740993}}}}`,
		`{"name":"flat","inputSchema":{"type":"object"}}`,
		`{"name":"bare","inputSchema":{"type":"object","properties":{}}}`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(o.Notes) != 5 {
		t.Errorf("notes %q", o.Notes)
	}
	for _, bad := range []string{``, `{}`, `[]`, `"x"`, `{"tools":7}`, `[7]`} {
		if _, err := tools([]byte(bad)); err == nil || !strings.HasSuffix(err.Error(), ".") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestACallBecomesOneToolCallAndItsMessageTheResult(t *testing.T) {
	image := `{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}}`
	for name, c := range map[string]struct{ answer, want string }{
		"messages":                       {`{"messages":[{"role":"tool","tool_call_id":"other","content":"no"},{"role":"tool","tool_call_id":"ID","content":"3"}]}`, `{"content":[{"type":"text","text":"3"}]}`},
		"array":                          {`[{"role":"tool","tool_call_id":"ID","content":"3"}]`, `{"content":[{"type":"text","text":"3"}]}`},
		"one":                            {`{"role":"tool","tool_call_id":"ID","content":"3"}`, `{"content":[{"type":"text","text":"3"}]}`},
		"outputs":                        {`{"tool_outputs":[{"tool_call_id":"ID","output":"3"}]}`, `{"content":[{"type":"text","text":"3"}]}`},
		"responses":                      {`{"results":[{"type":"function_call_output","call_id":"ID","output":"3"}]}`, `{"content":[{"type":"text","text":"3"}]}`},
		"tool responses":                 {`{"tool_responses":[{"tool_call_id":"ID","output":{"result":"3"}}]}`, `{"content":[{"type":"text","text":"3"}]}`},
		"result object":                  {`{"tool_responses":[{"tool_call_id":"ID","output":{"result":{"n":9007199254740993},"error":null}}]}`, `{"content":[{"type":"text","text":"{\"n\":9007199254740993}"}],"structuredContent":{"n":9007199254740993}}`},
		"error in output":                {`{"tool_responses":[{"tool_call_id":"ID","output":{"error":"no"}}]}`, `{"content":[{"type":"text","text":"no"}],"isError":true}`},
		"object with more than a result": {`{"tool_responses":[{"tool_call_id":"ID","output":{"result":"3","more":1}}]}`, `{"content":[{"type":"text","text":"{\"result\":\"3\",\"more\":1}"}],"structuredContent":{"result":"3","more":1}}`},
		"tool response":                  {`{"tool_response":{"tool_call_id":"ID","content":"3"}}`, `{"content":[{"type":"text","text":"3"}]}`},
		"text response":                  {`{"tool_response":"3"}`, `{"content":[{"type":"text","text":"3"}]}`},
		"tool_response next to the id":   {`{"tool_call_id":"ID","tool_response":{"n":1.0}}`, `{"content":[{"type":"text","text":"{\"n\":1.0}"}],"structuredContent":{"n":1.0}}`},
		"list of nested tool responses":  {`{"tool_responses":[{"tool_response":{"tool_call_id":"x","content":"no"}},{"tool_response":{"id":"ID","result":"3"}}]}`, `{"content":[{"type":"text","text":"3"}]}`},
		"by tool name":                   {`{"tool_responses":[{"tool_name":"add","response":{"n":1}}]}`, `{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1}}`},
		"id of a message":                {`{"id":"msg_1","content":"3"}`, `{"content":[{"type":"text","text":"3"}]}`},
		"id as a number":                 {`{"id":7,"tool_call_id":"ID","content":"3"}`, `{"content":[{"type":"text","text":"3"}]}`},
		"nameless":                       {`{"content":"3"}`, `{"content":[{"type":"text","text":"3"}]}`},
		"object":                         {`{"role":"tool","tool_call_id":"ID","content":"{\"n\": 9007199254740993}"}`, `{"content":[{"type":"text","text":"{\"n\": 9007199254740993}"}],"structuredContent":{"n": 9007199254740993}}`},
		"plain object":                   {`{"role":"tool","tool_call_id":"ID","content":{"n":1.0}}`, `{"content":[{"type":"text","text":"{\"n\":1.0}"}],"structuredContent":{"n":1.0}}`},
		"list":                           {`{"role":"tool","tool_call_id":"ID","content":[1,2]}`, `{"content":[{"type":"text","text":"[1,2]"}]}`},
		"parts":                          {`{"role":"tool","tool_call_id":"ID","content":[{"type":"text","text":"a"},` + image + `]}`, `{"content":[{"type":"text","text":"a"},{"type":"image","data":"iVBORw==","mimeType":"image/png"}]}`},
		"failed":                         {`{"role":"tool","tool_call_id":"ID","content":"no","is_error":true}`, `{"content":[{"type":"text","text":"no"}],"isError":true}`},
		"error":                          {`{"role":"tool","tool_call_id":"ID","error":"no"}`, `{"content":[{"type":"text","text":"no"}],"isError":true}`},
		"nothing":                        {`{"role":"tool","tool_call_id":"ID","content":null}`, `{"content":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, func(w http.ResponseWriter, r *http.Request, id string) {
				if got := r.Header.Get("Arguments"); got != `{ "a":9007199254740993,"b":1.0 }` {
					t.Errorf("the arguments came as %s", got)
				}
				fmt.Fprint(w, strings.ReplaceAll(c.answer, `"ID"`, `"`+id+`"`))
			})
			got, err := s.Call(t.Context(), "add", json.RawMessage(`{ "a":9007199254740993,"b":1.0 }`))
			if err != nil || string(got) != c.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}

func TestInvalidResponsesAreToolErrors(t *testing.T) {
	for _, answer := range []string{``, `<html>`, `[]`, `{"messages":[{"role":"tool","tool_call_id":"x","content":"no"}]}`, `[{"content":"a"},{"content":"b"}]`, `7`, `null`, `"3"`, `{"tool_responses":[{"content":"a"},{"tool_response":"b"}]}`, `{"tool_response":null}`, `{"role":"assistant","content":"no"}`} {
		s := open(t, func(w http.ResponseWriter, _ *http.Request, _ string) { fmt.Fprint(w, answer) })
		got, err := s.Call(t.Context(), "add", json.RawMessage(`{}`))
		if err != nil || !strings.Contains(string(got), `"isError":true`) {
			t.Errorf("%q: %s, %v", answer, got, err)
		}
	}
	s := open(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		http.Redirect(w, r, "http://elsewhere.invalid", http.StatusTemporaryRedirect)
	})
	if got, err := s.Call(t.Context(), "add", json.RawMessage(`{}`)); err != nil || !strings.Contains(string(got), "HTTP 307") {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := s.Call(t.Context(), "none", json.RawMessage(`{}`)); !errors.Is(err, adapt.ErrUnknownTool) {
		t.Errorf("%v", err)
	}
	large := open(t, func(w http.ResponseWriter, _ *http.Request, _ string) { fmt.Fprint(w, strings.Repeat(" ", 2<<20)) })
	var tooLarge *adapt.TooLarge
	if _, err := large.Call(t.Context(), "add", json.RawMessage(`{}`)); !errors.As(err, &tooLarge) {
		t.Errorf("%v", err)
	}
}

func TestFetchedListIsKeptWhenRefreshFails(t *testing.T) {
	var broken atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, `{"tools":%s}`, list)
	}))
	t.Cleanup(srv.Close)
	s := New(Config{ID: "tools", Endpoint: config.ToolEndpoint{URL: srv.URL, ToolsURL: srv.URL + "/tools"}})
	t.Cleanup(s.CloseIdle)
	broken.Store(true)
	if _, err := s.Offer(t.Context()); err == nil || !strings.Contains(err.Error(), "HTTP 500") {
		t.Errorf("%v", err)
	}
	broken.Store(false)
	if o, err := s.Offer(t.Context()); err != nil || len(o.Tools) != 3 {
		t.Fatalf("%v, %v", o, err)
	}
	broken.Store(true)
	s.offers.Fresh = 0 // what was read is too old
	if o, err := s.Offer(t.Context()); err != nil || len(o.Tools) != 3 {
		t.Errorf("%v, %v", o, err)
	}
}

func FuzzResponses(f *testing.F) {
	f.Add(`{"messages":[{"role":"tool","tool_call_id":"id","content":[{"type":"image_url"}]}]}`)
	f.Add(`[{"content":{"a":1}}]`)
	f.Add(`{"tool_responses":[{"tool_response":{"id":"id","result":1}},{"tool_call_id":7,"tool_response":"x"}]}`)
	f.Add(`{"tool_outputs":7,"content":"\ud800"}`)
	f.Add(`[{"tool_call_id":"id","content":"1"},{"tool_call_id":"id2","content":"2"},{"tool_call_id":"id","content":"3"}]`)
	f.Fuzz(func(t *testing.T, text string) {
		several := []*waiting{{id: "id"}, {id: "id2"}}
		(&gatherer{server: "s"}).answer(several, []byte(text))
		for _, c := range several {
			if (c.err == nil) == (c.result == nil) || c.result != nil && !json.Valid(c.result) || c.err != nil && schema.KindOf(c.err) != schema.KindOutcomeUnknown {
				t.Fatalf("%s: %s, %v", c.id, c.result, c.err)
			}
		}
		m, err := messageFor([]byte(text), "id")
		if err != nil {
			var u *unreadable
			if !errors.As(err, &u) {
				t.Fatal(err)
			}
			return
		}
		if raw := m.result(); !json.Valid(raw) {
			t.Fatalf("%s", raw)
		}
	})
}
