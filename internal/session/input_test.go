package session

import (
	"log/slog"
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

func TestMetadataMatchesTheProtocolRevision(t *testing.T) {
	extra := `{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/logLevel":"debug","progressToken":"theirs","own":1.0},"inputResponses":{"q":{"big":9007199254740993}},"requestState":"s"}`
	req := &Request{Name: "ask", Params: []byte(`{"z": 1.0}`), Extra: []byte(extra), Progress: func([]byte) {}}
	modern := string(appendRequest(nil, modernEnvelope("2026-07-28", "n", "v"), firstID, req))
	want := `{"jsonrpc":"2.0","id":4294967296,"method":"tools/call","params":{"name":"ask","arguments":{"z": 1.0},"inputResponses":{"q":{"big":9007199254740993}},"requestState":"s",` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/clientInfo":{"name":"n","version":"v"},"progressToken":4294967296,"own":1.0}}}`
	if modern != want {
		t.Errorf("modern: %s\nwant %s", modern, want)
	}
	legacy := string(appendRequest(nil, envelope{}, firstID, req))
	want = `{"jsonrpc":"2.0","id":4294967296,"method":"tools/call","params":{"name":"ask","arguments":{"z": 1.0},"_meta":{"progressToken":4294967296,"own":1.0}}}`
	if legacy != want {
		t.Errorf("legacy: %s\nwant %s", legacy, want)
	}
}

func TestCallerCapabilitiesAreSentWithPromptRequests(t *testing.T) {
	req := &Request{Method: schema.MethodGetPrompt, Params: []byte(`{"name":"p","_meta":{"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}`)}
	want := `{"jsonrpc":"2.0","id":4294967296,"method":"prompts/get","params":{"name":"p","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/clientInfo":{"name":"n","version":"v"}}}}`
	if got := string(appendRequest(nil, modernEnvelope("2026-07-28", "n", "v"), firstID, req)); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestInputRequiredIsAResultOnlyForCapableCallers(t *testing.T) {
	s := &session{pool: newPool(Config{}, slog.New(slog.DiscardHandler), func() {})}
	question := Outcome{Body: []byte(`{"resultType":"input_required"}`), Input: true, Started: true}
	if o := s.asked(&Request{}, question); o.Err == nil || o.Err.Kind != schema.KindInputRequired {
		t.Errorf("%+v", o)
	}
	if o := s.asked(&Request{Extra: []byte(`{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}`)}, question); o.Err != nil || !o.Input {
		t.Errorf("%+v", o)
	}
}
