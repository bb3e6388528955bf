package format

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/schema"
)

// exact is an arguments object that must arrive byte for byte.
const exact = `{ "z":9007199254740993,"a": 1.0,"é":"\u00e9 <&>","n":-0.0e+5 }`

type simple struct{ ID, Name, Arguments string }

func simply(calls []Call) (all []simple) {
	for _, c := range calls {
		all = append(all, simple{c.ID, c.Name, string(c.Arguments)})
	}
	return all
}

func quoted(s string) string { return string(quote(s)) }

func TestToolCallsOfEveryProviderAreReadWithTheirBytes(t *testing.T) {
	one := []simple{{"id1", "s__t", exact}}
	for name, c := range map[string]struct {
		format Format
		body   string
		want   []simple
	}{
		"openai message":         {OpenAI, `{"role":"assistant","content":null,"tool_calls":[{"id":"id1","type":"function","function":{"name":"s__t","arguments":` + quoted(exact) + `}}]}`, one},
		"openai answer":          {OpenAI, `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"id1","function":{"name":"s__t","arguments":` + quoted(exact) + `}}]}},{"message":{"tool_calls":[{"id":"other","function":{"name":"o"}}]}}]}`, one},
		"openai list":            {OpenAI, `[{"id":"id1","type":"function","function":{"name":"s__t","arguments":` + quoted(exact) + `}}]`, one},
		"openai one":             {OpenAI, `{"id":"id1","type":"function","function":{"name":"s__t","arguments":` + quoted(exact) + `}}`, one},
		"openai object":          {OpenAI, `{"tool_calls":[{"id":"id1","function":{"name":"s__t","arguments":` + exact + `}}]}`, one},
		"openai old":             {OpenAI, `{"role":"assistant","content":null,"function_call":{"name":"s__t","arguments":` + quoted(exact) + `}}`, []simple{{"", "s__t", exact}}},
		"openai without":         {OpenAI, `{"tool_calls":[{"id":"a","function":{"name":"s__t","arguments":""}},{"id":"b","function":{"name":"s__u"}}]}`, []simple{{"a", "s__t", "{}"}, {"b", "s__u", "{}"}}},
		"responses answer":       {Responses, `{"id":"r","object":"response","output":[{"type":"reasoning","summary":[]},{"type":"function_call","id":"fc","call_id":"id1","name":"s__t","arguments":` + quoted(exact) + `},{"type":"message","content":[]}]}`, one},
		"responses list":         {Responses, `[{"type":"function_call","call_id":"id1","name":"s__t","arguments":` + quoted(exact) + `}]`, one},
		"anthropic message":      {Anthropic, `{"role":"assistant","content":[{"type":"text","text":"So:"},{"type":"tool_use","id":"id1","name":"s__t","input":` + exact + `}],"stop_reason":"tool_use"}`, one},
		"anthropic block":        {Anthropic, `{"type":"tool_use","id":"id1","name":"s__t","input":` + exact + `}`, one},
		"gemini answer":          {Gemini, `{"candidates":[{"content":{"role":"model","parts":[{"text":"So"},{"functionCall":{"id":"id1","name":"s__t","args":` + exact + `},"thoughtSignature":"x"}]}}]}`, one},
		"gemini content":         {Gemini, `{"role":"model","parts":[{"functionCall":{"name":"s__t","args":` + exact + `}},{"functionCall":{"name":"s__u"}}]}`, []simple{{"", "s__t", exact}, {"", "s__u", "{}"}}},
		"gemini part":            {Gemini, `{"function_call":{"name":"s__t","args":` + exact + `}}`, []simple{{"", "s__t", exact}}},
		"mcp request":            {MCP, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"s__t","arguments":` + exact + `}}`, []simple{{"7", "s__t", exact}}},
		"mcp params":             {MCP, `{"name":"s__t","arguments":` + exact + `}`, []simple{{"", "s__t", exact}}},
		"two in order, and text": {Anthropic, `[{"type":"tool_use","id":"1","name":"b","input":{}},{"type":"text","text":""},{"type":"tool_use","id":"2","name":"a","input":null}]`, []simple{{"1", "b", "{}"}, {"2", "a", "{}"}}},
	} {
		f, err := Detect([]byte(c.body))
		if err != nil || f != c.format {
			t.Errorf("%s is taken for %q, %v", name, f, err)
		}
		calls, err := c.format.Calls([]byte(c.body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, simply(calls)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
		for _, call := range calls {
			if call.Err != nil {
				t.Errorf("%s: %v", name, call.Err)
			}
		}
	}
}

func TestBadCallDoesNotAffectOtherCalls(t *testing.T) {
	calls, err := OpenAI.Calls([]byte(`{"tool_calls":[{"id":"a","function":{"name":"t","arguments":"{\"x\":"}},{"id":"b","function":{"arguments":"{}"}},{"id":"c","type":"custom","custom":{"name":"k","input":"x"}},{"id":"d","function":{"name":"t","arguments":"{}"}}]}`))
	if err != nil || len(calls) != 4 {
		t.Fatalf("%d calls, %v", len(calls), err)
	}
	for i, kind := range []schema.Kind{schema.KindInvalidArguments, schema.KindInvalidRequest, schema.KindInvalidRequest, ""} {
		var got schema.Kind
		if calls[i].Err != nil {
			got = calls[i].Err.Kind
		}
		if got != kind {
			t.Errorf("call %d: %q, want %q", i, got, kind)
		}
	}
}

func TestABodyWithoutToolCallsIsRefused(t *testing.T) {
	for _, body := range []string{``, `{`, `{}`, `[]`, `null`, `7`, `{"role":"assistant","content":"hello"}`, `{"choices":[]}`, `{"content":[{"type":"text","text":"x"}]}`, `{"method":"tools/list","params":{"name":"x"}}`} {
		if f, err := Detect([]byte(body)); schema.KindOf(err) != schema.KindInvalidRequest {
			t.Errorf("%q: %q, %v", body, f, err)
		}
	}
	many := `[` + strings.Repeat(`{"type":"tool_use","name":"t"},`, MaxCalls) + `{"type":"tool_use","name":"t"}]`
	if _, err := Anthropic.Calls([]byte(many)); schema.KindOf(err) != schema.KindTooLarge {
		t.Errorf("too many calls: %v", err)
	}
}

func TestCallsOfAConversationDoNotRunAgain(t *testing.T) {
	for f, body := range map[Format]string{
		OpenAI:    `[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"pay","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"paid"},{"role":"assistant","tool_calls":[{"id":"c2","type":"function","function":{"name":"list","arguments":"{}"}}]}]`,
		Responses: `[{"role":"user","content":"x"},{"type":"function_call","call_id":"c1","name":"pay","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"paid"},{"type":"function_call","call_id":"c2","name":"list","arguments":"{}"}]`,
		Anthropic: `[{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"pay","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"paid"}]},{"role":"assistant","content":[{"type":"tool_use","id":"c2","name":"list","input":{}}]}]`,
		Gemini:    `[{"role":"model","parts":[{"functionCall":{"name":"pay","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"pay","response":{}}}]},{"role":"model","parts":[{"functionCall":{"name":"list","args":{}}}]}]`,
	} {
		if got, err := Detect([]byte(body)); got != f || err != nil {
			t.Errorf("%s: %s, %v", f, got, err)
		}
		if calls, err := f.Calls([]byte(body)); len(calls) > 0 || schema.KindOf(err) != schema.KindInvalidRequest || !strings.Contains(err.Error(), "conversation") {
			t.Errorf("%s: %d calls, %v", f, len(calls), err)
		}
	}
	// A message of the model itself, whose arguments look like an answer.
	body := `{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"c","name":"echo","input":{"type":"tool_result","role":"tool"}}]}`
	if calls, err := Anthropic.Calls([]byte(body)); len(calls) != 1 || err != nil {
		t.Errorf("%d calls, %v", len(calls), err)
	}
}

func TestCallsRoundTripThroughEveryProvider(t *testing.T) {
	calls := []Call{{ID: "a", Name: "s__t", Arguments: []byte(`{"x":9007199254740993,"y":"é"}`)}, {ID: "b", Name: "s__u", Arguments: []byte(`{}`)}}
	for _, f := range formats() {
		raw := f.Block(calls)
		if got, err := Detect(raw); err != nil || got != f {
			t.Errorf("%s is taken for %q, %v: %s", f, got, err, raw)
		}
		back, err := f.Calls(raw)
		want := simply(calls)
		if f == MCP { // the JSON text of the JSON-RPC id
			want[0].ID, want[1].ID = `"a"`, `"b"`
		}
		if diff := cmp.Diff(want, simply(back)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", f, err, diff)
		}
	}
}

// results returns answers of every kind.
func results() []Answer {
	call := func(id string) Call { return Call{ID: id, Name: "s__" + id} }
	return []Answer{
		{Call: call("text"), Result: []byte(`{"content":[{"type":"text","text":"Hello <&> é"},{"type":"text","text":"again"}]}`)},
		{Call: call("structured"), Result: []byte(`{"content":[],"structuredContent":{"n":9007199254740993,"a":[1.0]}}`)},
		{Call: call("both"), Result: []byte(`{"content":[{"type":"text","text":"{ \"n\": 1 }"}],"structuredContent":{"n":1}}`)},
		{Call: call("differ"), Result: []byte(`{"content":[{"type":"text","text":"one"}],"structuredContent":{"n":1}}`)},
		{Call: call("error"), Result: []byte(`{"content":[{"type":"text","text":"no such file"}],"isError":true}`)},
		{Call: call("silent"), Result: []byte(`{"content":[],"isError":true}`)},
		{Call: call("empty"), Result: []byte(`{"content":[{"type":"text","text":""}]}`)},
		{Call: call("image"), Result: []byte(`{"content":[{"type":"text","text":"A dot:"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},{"type":"image","data":"PHN2Zz4=","mimeType":"image/svg+xml"}]}`)},
		{Call: call("audio"), Result: []byte(`{"content":[{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"}]}`)},
		{Call: call("resource"), Result: []byte(`{"content":[{"type":"resource","resource":{"uri":"file:///a/b.txt","mimeType":"text/plain","text":"line"}},{"type":"resource","resource":{"uri":"file:///a/c.pdf","mimeType":"application/pdf","blob":"JVBERi0="}},{"type":"resource","resource":{"uri":"x:z","mimeType":"application/zip","blob":"UEs="}},{"type":"resource_link","uri":"file:///a","name":"a","mimeType":"text/plain"}]}`)},
		{Call: call("unknown"), Result: []byte(`{"content":[{"type":"hologram","data":9007199254740993}]}`)},
		{Call: call("refused"), Text: "There is no tool \"x\".", Failed: true},
		{Call: call("held"), Text: "It waits."},
	}
}

func TestResultsAreWrittenForEveryProvider(t *testing.T) {
	for _, f := range formats() {
		messages, notes := f.Messages(results())
		said, err := json.Marshal(map[string]any{"messages": messages, "notes": notes})
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "results."+string(f)+".json", said)
		if strings.Count(string(messages), "hologram") != 1 || !strings.Contains(string(messages), "9007199254740993") {
			t.Errorf("%s loses what it does not know: %s", f, messages)
		}
	}
	golden(t, "results.plain.json", OpenAI.PlainMessages(results()[:6]))
	for _, f := range formats() {
		if messages, _ := f.Messages(nil); string(messages) != "[]" {
			t.Errorf("%s answers no calls with %s", f, messages)
		}
	}
}

func TestEveryCallHasItsAnswerInOrder(t *testing.T) {
	answers := results()
	for _, f := range []Format{OpenAI, Responses, Anthropic, Gemini} {
		messages, _ := f.Messages(answers)
		replies, err := f.Replies(messages)
		if err != nil || len(replies) != len(answers) {
			t.Fatalf("%s: %d replies, %v", f, len(replies), err)
		}
		for i, r := range replies {
			if r.ID != answers[i].Call.ID {
				t.Errorf("%s: reply %d is to %q", f, i, r.ID)
			}
			c := contentOf(Answer{Result: r.Result})
			failed := strings.Contains(string(r.Result), "reported an error") || strings.Contains(string(r.Result), "This call failed") || c.failed
			if want := contentOf(answers[i]).failed; failed != want {
				t.Errorf("%s: the failure of reply %d is lost: %s", f, i, r.Result)
			}
		}
	}
}

func TestJSONRPCResponseKeepsTheBytesOfTheResult(t *testing.T) {
	calls, err := MCP.Calls([]byte(`{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"name":"s__t"}}`))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := MCP.Messages([]Answer{{Call: calls[0], Result: []byte(`{ "content" : [],"x":1.0 }`)}})
	if want := `[{"jsonrpc":"2.0","id":"q","result":{ "content" : [],"x":1.0 }}]`; string(got) != want {
		t.Errorf("got %s", got)
	}
}

func FuzzCalls(f *testing.F) {
	for _, p := range formats() {
		f.Add(string(p.Block([]Call{{ID: "a", Name: "t", Arguments: []byte(exact)}})), exact)
	}
	f.Add(`{"choices":[{"message":{"function_call":{"name":"t","arguments":"{}"}}}]}`, `{"content":[{"type":"resource","resource":{}}],"structuredContent":[]}`)
	f.Fuzz(func(t *testing.T, body, result string) {
		for _, p := range formats() {
			calls, err := p.Calls([]byte(body))
			if err != nil {
				continue
			}
			var answers []Answer
			for _, c := range calls {
				answers = append(answers, Answer{Call: c, Result: []byte(result)})
			}
			messages, notes := p.Messages(answers)
			if !json.Valid(messages) || len(notes) != len(answers) {
				t.Fatalf("%s answers %q to %q with %q", p, result, body, messages)
			}
			if plain := p.PlainMessages(answers); !json.Valid(plain) {
				t.Fatalf("%s answers in text with %q", p, plain)
			}
		}
		_, _ = Detect([]byte(body))
	})
}
