package model

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
)

// chunks returns a stream of chat completions with the deltas.
func chunks(deltas ...string) string {
	var b strings.Builder
	for _, d := range deltas {
		b.WriteString(`data: {"choices":[{"index":0,"delta":` + d + "}]}\n\n")
	}
	return b.String() + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
}

func TestCallsWithoutIDsStayApart(t *testing.T) {
	const a, b = `"function":{"name":"a","arguments":"{\"n\":1}"}`, `"function":{"name":"a","arguments":{"n":2}}`
	for name, stream := range map[string]string{
		"one chunk, no index":  chunks(`{"tool_calls":[{` + a + `},{` + b + `}]}`),
		"two chunks, no index": chunks(`{"tool_calls":[{`+a+`}]}`, `{"tool_calls":[{`+b+`}]}`),
		"one index":            chunks(`{"tool_calls":[{"index":0,`+a+`}]}`, `{"tool_calls":[{"index":0,`+b+`}]}`),
		"indexes, in pieces": chunks(`{"tool_calls":[{"index":0,"function":{"name":"a","arguments":"{\"n\""}},{"index":1,"function":{"name":"a"}}]}`,
			`{"tool_calls":[{"index":1,"function":{"arguments":"{\"n\":2}"}},{"index":0,"function":{"arguments":":1}"}}]}`),
	} {
		got, err := Assemble(strings.NewReader(stream), chat{}.Stream(func(string) {}))
		if err != nil || len(got.Calls) != 2 || string(got.Calls[0].Arguments) != `{"n":1}` || string(got.Calls[1].Arguments) != `{"n":2}` || got.Calls[0].Name != "a" || got.Calls[1].Name != "a" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestACallWithUnreadableInputIsNotDropped has an API end an answer as complete whose call is not.
func TestACallWithUnreadableInputIsNotDropped(t *testing.T) {
	stream := string(read(t, "anthropic-max-tokens.sse"))
	if _, err := Assemble(strings.NewReader(stream), anthropic{}.Stream(func(string) {})); err != nil {
		t.Fatal(err)
	}
	stream = strings.Replace(stream, `"stop_reason":"max_tokens"`, `"stop_reason":"tool_use"`, 1)
	a, err := Assemble(strings.NewReader(stream), anthropic{}.Stream(func(string) {}))
	if invalid := (*shapeError)(nil); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "is not JSON") {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestAStreamIsReadWhateverItsContentType(t *testing.T) {
	for kind, file := range map[string]string{"text/plain": "chat.sse", "Text/Event-Stream; charset=utf-8": "chat.sse", "application/octet-stream": "chat.sse", "text/html": "chat.json"} {
		client, _ := serve(t, "compatible:m", nil, answers(kind, read(t, file)))
		if a, err := client.Ask(context.Background(), &Request{}, func(string) {}, nil); err != nil || a.Text == "" && len(a.Calls) == 0 {
			t.Errorf("%s: %+v, %v", kind, a, err)
		}
	}
}

func TestACallWithoutArgumentsIsWritten(t *testing.T) {
	for _, arguments := range []json.RawMessage{nil, {}, json.RawMessage("{"), json.RawMessage("{}")} {
		var back Call
		text, err := json.Marshal(Call{Name: "a", Arguments: arguments})
		if err != nil || json.Unmarshal(text, &back) != nil || back.Name != "a" {
			t.Errorf("%q: %s, %v", arguments, text, err)
		}
	}
}

// TestARedirectIsNotFollowed has an API at another address. The key must not go there.
func TestARedirectIsNotFollowed(t *testing.T) {
	other, seen := serve(t, "anthropic:m", nil, answers("application/json", read(t, "anthropic.json")))
	for _, status := range []string{"301", "307"} {
		code := map[string]int{"301": http.StatusMovedPermanently, "307": http.StatusTemporaryRedirect}[status]
		client, _ := serve(t, "anthropic:m", nil, fails(code, "", "Location", other.base+"/v1/messages"))
		_, err := client.Ask(context.Background(), &Request{}, nil, nil)
		if err == nil || !strings.Contains(err.Error(), "HTTP "+status+": it redirects to "+other.base+"/v1/messages; set the address with --base-url") || len(seen.asked) != 0 {
			t.Errorf("%s: %v; the other address was asked %q", status, err, seen.asked)
		}
	}
}
