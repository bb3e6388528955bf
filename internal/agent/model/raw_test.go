package model

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestArgumentsKeepTheirBytes streams inputs with spaces, escapes and large numbers in pieces.
// The official libraries return them as written.
func TestArgumentsKeepTheirBytes(t *testing.T) {
	const input = `{ "n" : 12345678901234567890, "f": 1.50, "h": "<a>\u00e9 &" }`
	half, rest := string(textOf(input[:11])), string(textOf(input[11:]))
	streams := map[string]struct {
		wire   Wire
		events []string
	}{
		"anthropic": {anthropic{}, []string{
			`{"type":"message_start","message":{"role":"assistant","content":[]}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":` + half + `}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":` + rest + `}}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, `{"type":"message_stop"}`,
		}},
		"chat": {chat{}, []string{
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":` + half + `}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":` + rest + `}}]},"finish_reason":"tool_calls"}]}`,
		}},
		"gemini": {gemini{}, []string{`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":` + input + `}}]},"finishReason":"STOP"}]}`}},
		"responses": {responses{}, []string{
			`{"type":"response.output_item.done","item":{"type":"function_call","call_id":"a","name":"f","arguments":` + string(textOf(input)) + `}}`,
			`{"type":"response.completed","response":{"status":"completed","output":[]}}`,
		}},
	}
	for name, s := range streams {
		a, err := Assemble(strings.NewReader("data: "+strings.Join(s.events, "\n\ndata: ")+"\n\n"), s.wire.Stream(func(string) {}))
		if err != nil || len(a.Calls) != 1 || string(a.Calls[0].Arguments) != input || !json.Valid(a.Body) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}

// TestAnEmptyPartIsNotSentBack reads the empty text that ends Gemini streams. It must not be sent
// back, because a part of a request must have data. If it has a signature, it must be sent back.
func TestAnEmptyPartIsNotSentBack(t *testing.T) {
	for last, want := range map[string]string{
		`{"text":""}`:                            `{"role":"model","parts":[{"functionCall":{"name":"f"}}]}`,
		`{"text":"","thoughtSignature":"c2ln"}`:  `{"role":"model","parts":[{"functionCall":{"name":"f"}},{"text":"","thoughtSignature":"c2ln"}]}`,
		`{"text":"","thought":true},{"text":""}`: `{"role":"model","parts":[{"functionCall":{"name":"f"}}]}`,
	} {
		stream := `data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}` + "\n\n" + `data: {"candidates":[{"content":{"parts":[` + last + `]},"finishReason":"STOP"}]}` + "\n\n"
		a, err := Assemble(strings.NewReader(stream), gemini{}.Stream(func(string) {}))
		if err != nil || len(a.Messages) != 1 || string(a.Messages[0]) != want {
			t.Errorf("%s: %+v, %v", last, a, err)
		}
	}
	a, err := gemini{}.Read([]byte(`{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}]}`))
	if err != nil || len(a.Messages) != 0 {
		t.Errorf("an answer of nothing: %+v, %v", a, err)
	}
}
