package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func ask(s *Server, path, body string) (status int, answer string) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

// TestASignedPartMustBeSentBackUnchanged sends signed answers back, unchanged and modified.
func TestASignedPartMustBeSentBackUnchanged(t *testing.T) {
	turn := Turn{Thought: "I think.", Text: "I look.", Calls: []Call{{"c0", "one", "{}"}, {"c1", "two", "{}"}}}
	signature, err := json.Marshal(geminiSignature(0))
	if err != nil {
		t.Fatal(err)
	}
	call := func(name, more string) string {
		return `{"functionCall":{"name":"` + name + `","args":{}}` + more + `}`
	}
	mark := `,"thoughtSignature":` + string(signature)
	reasoning := `{"type":"reasoning","id":"rs_0","summary":[],"encrypted_content":"` + encrypted(0) + `"},`
	message := `{"type":"message","role":"assistant","content":[]},`
	reasons := []string{"a signed part", "field 'data'", "base64", "its required following item"}
	for _, c := range []struct {
		path, body string
		good       string
		bad        []string
	}{
		{
			path: "/v1/messages", body: `{"max_tokens":9,"messages":[{"role":"user","content":"Go."}%s]}`,
			good: thinking("I think.", 0) + toolUse,
			bad:  []string{thinking("I thought.", 0) + toolUse, thinking("I think.", 1) + toolUse, `,{"role":"assistant","content":[` + toolUse},
		},
		{
			path: "/v1beta/models/m:generateContent", body: `{"contents":[{"role":"user","parts":[{"text":"Go."}]}%s]}`,
			good: parts(call("one", mark), call("two", "")),
			bad: []string{
				parts(call("one", ""), call("two", mark)), parts(call("one", ""), call("two", "")), parts(call("one", mark), call("two", mark)),
				parts(call("one", mark), call("two", ""), `{"text":""}`), parts(call("one", `,"thoughtSignature":"x"`), call("two", "")),
			},
		},
		{
			path: "/v1/responses", body: `{"input":[{"role":"user","content":"Go."}%s]}`,
			good: "," + reasoning + message + functionCalls,
			bad:  []string{"," + message + reasoning + functionCalls, "," + message + functionCalls, "," + message + functionCalls + "," + strings.TrimSuffix(reasoning, ",")},
		},
	} {
		for i, rest := range append([]string{c.good}, c.bad...) {
			s := New(Script{turn, {Text: "The end."}})
			if status, answer := ask(s, c.path, fmt.Sprintf(c.body, "")); status != http.StatusOK {
				t.Fatalf("%s: %s", c.path, answer)
			}
			status, answer := ask(s, c.path, fmt.Sprintf(c.body, rest))
			if good := i == 0; good != (status == http.StatusOK) {
				t.Errorf("%s, %d: %d, %s", c.path, i, status, answer)
			}
			if i > 0 && !slices.ContainsFunc(reasons, func(r string) bool { return strings.Contains(answer, r) }) {
				t.Errorf("%s, %d is refused for another reason: %s", c.path, i, answer)
			}
		}
	}
}

const (
	toolUse = `{"type":"text","text":"I look."},{"type":"tool_use","id":"c0","name":"one","input":{}},{"type":"tool_use","id":"c1","name":"two","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c0","content":"a"},{"type":"tool_result","tool_use_id":"c1","content":"b"}]}`
	functionCalls = `{"type":"function_call","call_id":"c0","name":"one","arguments":"{}"},{"type":"function_call","call_id":"c1","name":"two","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"c0","output":"a"},{"type":"function_call_output","call_id":"c1","output":"b"}`
)

func thinking(text string, n int) string {
	block := `{"type":"thinking","thinking":"` + text + `","signature":"` + signature(n) + `"},`
	return `,{"role":"assistant","content":[` + block
}

func parts(all ...string) string {
	return `,{"role":"model","parts":[` + strings.Join(all, ",") + `]},` +
		`{"role":"user","parts":[{"functionResponse":{"name":"one","response":{}}},{"functionResponse":{"name":"two","response":{}}}]}`
}
