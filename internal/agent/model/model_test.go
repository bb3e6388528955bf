package model

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorded returns the streams in testdata. Each has a file with the same answer without streaming.
func recorded(t testing.TB) map[string]Wire {
	t.Helper()
	return map[string]Wire{
		"chat": chat{}, "chat-parallel": chat{}, "chat-ollama": chat{}, "chat-reasoning": chat{},
		"responses": responses{}, "responses-without-output": responses{},
		"anthropic": anthropic{}, "anthropic-thinking": anthropic{}, "anthropic-max-tokens": anthropic{},
		"gemini": gemini{}, "gemini-signed": gemini{}, "gemini-blocked": gemini{},
	}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// plain is an answer in a comparable form.
type plain struct {
	Text, Stop string
	Calls      []string
	Usage      Usage
	Messages   []any
}

func plainOf(t testing.TB, a *Answer) plain {
	t.Helper()
	p := plain{Text: a.Text, Stop: a.Stop, Usage: a.Usage}
	for _, c := range a.Calls {
		p.Calls = append(p.Calls, c.ID+" "+c.Name+" "+string(c.Arguments))
	}
	for _, m := range a.Messages {
		var v any
		if err := json.Unmarshal(m, &v); err != nil {
			t.Fatalf("the message %s: %v", m, err)
		}
		p.Messages = append(p.Messages, v)
	}
	return p
}

func TestStreamDecodesLikeTheCompleteResponse(t *testing.T) {
	for name, wire := range recorded(t) {
		stream := read(t, name+".sse")
		whole, err := wire.Read(read(t, name+".json"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := plainOf(t, whole)
		var said strings.Builder
		a, err := Assemble(strings.NewReader(string(stream)), wire.Stream(func(s string) { said.WriteString(s) }))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, plainOf(t, a)); diff != "" {
			t.Errorf("%s: whole against streamed: %s", name, diff)
		}
		if said.String() != a.Text {
			t.Errorf("%s: the text is %q, and the pieces were %q", name, a.Text, said.String())
		}
		if again, err := wire.Read(a.Body); err != nil || cmp.Diff(want, plainOf(t, again)) != "" {
			t.Errorf("%s: the body that was put together is %s, %v", name, a.Body, err)
		}
	}
}

// differs returns the difference of two answers, or "". Thousands of answers are equal byte for byte, and
// those are not decoded.
func differs(t testing.TB, want, got *Answer) string {
	t.Helper()
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(plainOf(t, want), plainOf(t, got))
}

func TestStreamDecodesTheSameWithAnyChunking(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 7
	}
	for name, wire := range recorded(t) {
		stream := string(read(t, name+".sse"))
		whole, err := Assemble(strings.NewReader(stream), wire.Stream(func(string) {}))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for at := 0; at < len(stream); at += step {
			a, err := Assemble(io.MultiReader(strings.NewReader(stream[:at]), strings.NewReader(stream[at:])), wire.Stream(func(string) {}))
			if err != nil {
				t.Fatalf("%s at byte %d: %v", name, at, err)
			}
			if diff := differs(t, whole, a); diff != "" {
				t.Fatalf("%s at byte %d: %s", name, at, diff)
			}
		}
		if a, err := Assemble(iotest.OneByteReader(strings.NewReader(stream)), wire.Stream(func(string) {})); err != nil || differs(t, whole, a) != "" {
			t.Errorf("%s byte by byte: %v", name, err)
		}
	}
}

// A stream that ends early is an error, or already has all content: it never silently has less.
func TestAStreamThatEndsEarlyIsNoAnswer(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 7
	}
	for name, wire := range recorded(t) {
		stream := string(read(t, name+".sse"))
		whole, err := Assemble(strings.NewReader(stream), wire.Stream(func(string) {}))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for at := 0; at < len(stream); at += step {
			a, err := Assemble(strings.NewReader(stream[:at]), wire.Stream(func(string) {}))
			if err != nil {
				if !errors.Is(err, ErrTruncated) {
					t.Fatalf("%s up to byte %d: %v", name, at, err)
				}
				continue
			}
			a.Usage = whole.Usage // it comes last, or not at all
			if diff := differs(t, whole, a); diff != "" {
				t.Fatalf("%s up to byte %d: %s", name, at, diff)
			}
		}
	}
}

func TestSignedBlocksAreSentBackUnchanged(t *testing.T) {
	for name, want := range map[string][]string{
		"anthropic-thinking": {`"signature":"EqoBCkgIARAB"`, `"thinking":"I need the sum. Then I answer."`, `"type":"redacted_thinking"`, `"data":"EmwKAhgB"`},
		"gemini-signed":      {`"thoughtSignature":"CsIBAVKhc7s="`},
	} {
		wire := recorded(t)[name]
		a, err := Assemble(strings.NewReader(string(read(t, name+".sse"))), wire.Stream(func(string) {}))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if len(a.Messages) != 1 || !strings.Contains(string(a.Messages[0]), part) {
				t.Errorf("%s: the message %s lacks %s", name, a.Messages, part)
			}
		}
	}
}

// api responds with one step after the other and records the requests.
type api struct {
	steps []func(w http.ResponseWriter)
	asked []string
	heads []http.Header
}

func (f *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.asked, f.heads = append(f.asked, r.URL.RequestURI()+" "+string(body)), append(f.heads, r.Header)
	step := f.steps[min(len(f.asked)-1, len(f.steps)-1)]
	step(w)
}

func serve(t *testing.T, spec string, env map[string]string, steps ...func(http.ResponseWriter)) (*Client, *api) {
	t.Helper()
	f := &api{steps: steps}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	s, err := ParseSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(s, Options{BaseURL: server.URL, Getenv: func(name string) string { return env[name] }, HTTP: server.Client(), Headers: map[string]string{"X-More": "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Client().CloseIdleConnections)
	return c, f
}

func answers(kind string, body []byte) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(body)
	}
}

func fails(status int, body string, headers ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestRequestsMatchTheAPIOfEachProvider(t *testing.T) {
	for _, c := range []struct {
		spec, env, file, path, header, value string
		body                                 []string
	}{
		{"openai:gpt-5", "OPENAI_API_KEY", "chat", "/chat/completions ", "Authorization", "Bearer k", []string{`"model":"gpt-5"`, `{"role":"system","content":"Be brief."}`, `"stream":true`, `"include_usage":true`}},
		{"responses:gpt-5", "OPENAI_API_KEY", "responses", "/responses ", "Authorization", "Bearer k", []string{`"instructions":"Be brief."`, `"store":false`, `"reasoning.encrypted_content"`}},
		{"anthropic:claude", "ANTHROPIC_API_KEY", "anthropic", "/v1/messages ", "X-Api-Key", "k", []string{`"max_tokens":8192`, `"system":"Be brief."`}},
		{"gemini:g", "GOOGLE_API_KEY", "gemini", "/v1beta/models/g:streamGenerateContent?alt=sse ", "X-Goog-Api-Key", "k", []string{`"systemInstruction":{"parts":[{"text":"Be brief."}]}`}},
		{"compatible:m", "MODEL_API_KEY", "chat", "/chat/completions ", "Authorization", "Bearer k", nil},
	} {
		client, f := serve(t, c.spec, map[string]string{c.env: "k"}, answers("text/event-stream", read(t, c.file+".sse")))
		r := &Request{System: "Be brief.", Messages: []json.RawMessage{client.Wire.User("hello <you>")}, Tools: json.RawMessage(`[{"name":"x"}]`)}
		a, err := client.Ask(context.Background(), r, func(string) {}, nil)
		if err != nil || len(a.Messages) == 0 {
			t.Errorf("%s: %v", c.spec, err)
			continue
		}
		if !strings.HasPrefix(f.asked[0], c.path) || f.heads[0].Get(c.header) != c.value || f.heads[0].Get("X-More") != "yes" {
			t.Errorf("%s: asked %s with %s", c.spec, f.asked[0], f.heads[0].Get(c.header))
		}
		for _, want := range append(c.body, `"tools":[{"name":"x"}]`, "hello <you>") {
			if !strings.Contains(f.asked[0], want) {
				t.Errorf("%s: asked %s, which lacks %s", c.spec, f.asked[0], want)
			}
		}
		whole, f := serve(t, c.spec, map[string]string{c.env: "k"}, answers("application/json", read(t, c.file+".json")))
		if a, err := whole.Ask(context.Background(), r, nil, nil); err != nil || len(a.Messages) == 0 || strings.Contains(f.asked[0], `"stream":true`) {
			t.Errorf("%s without streaming: %v, asked %s", c.spec, err, f.asked[0])
		}
	}
}

func TestARequestThatFailedForAMomentIsSentAgain(t *testing.T) {
	pauses.First, pauses.Max = 0, 0
	good := answers("text/event-stream", read(t, "anthropic.sse"))
	overloaded := answers("text/event-stream", []byte("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"))
	half := answers("text/event-stream", read(t, "anthropic.sse")[:600])
	client, f := serve(t, "anthropic:claude", nil, fails(529, `{"error":{"type":"overloaded_error","message":"Overloaded"}}`), overloaded, half, good)
	restarts := 0
	a, err := client.Ask(context.Background(), &Request{}, func(string) {}, func() { restarts++ })
	if err != nil || a.Stop != "tool_use" || len(f.asked) != 4 || restarts != 1 {
		t.Errorf("%v after %d requests and %d restarts", err, len(f.asked), restarts)
	}
	client, f = serve(t, "anthropic:claude", nil, fails(400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages: text"}}`))
	var fault *Error
	if _, err := client.Ask(context.Background(), &Request{}, nil, nil); !errors.As(err, &fault) || fault.Status != 400 || fault.Type != "invalid_request_error" || len(f.asked) != 1 {
		t.Errorf("%v after %d requests", err, len(f.asked))
	}
	client, f = serve(t, "openai:gpt", map[string]string{"OPENAI_API_KEY": "k"}, fails(429, "slow down", "Retry-After", "3600"))
	if _, err := client.Ask(context.Background(), &Request{}, nil, nil); !errors.As(err, &fault) || fault.Message != "slow down" || len(f.asked) != 1 {
		t.Errorf("a long Retry-After: %v after %d requests", err, len(f.asked))
	}
}

func TestAnEmptyStreamIsRequestedAgainWithoutStreaming(t *testing.T) {
	empty := []byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":10}}\n\ndata: [DONE]\n\n")
	body := read(t, "chat-ollama.json")
	alone, err := chat{}.Read(body)
	if err != nil {
		t.Fatal(err)
	}
	client, f := serve(t, "ollama:qwen3", nil, answers("text/event-stream", empty), answers("application/json", body))
	a, err := client.Ask(context.Background(), &Request{}, func(string) {}, nil)
	if err != nil || a.Usage.Input != alone.Usage.Input+1000 || a.Usage.Output != alone.Usage.Output+10 {
		t.Errorf("both answers cost %+v, %v", a, err)
	}
	if err != nil || len(a.Calls) != 2 || len(f.asked) != 2 || strings.Contains(f.asked[1], `"stream":true`) {
		t.Errorf("%+v, %v after %q", a, err, f.asked)
	}
}

func TestRetriesEndAlsoAfterAnEmptyStream(t *testing.T) {
	pauses.First, pauses.Max = 0, 0
	empty := answers("text/event-stream", []byte("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"))
	down := fails(503, "down")
	client, f := serve(t, "ollama:qwen3", nil, down, down, down, empty, down, down, down, down, fails(400, "gave up"))
	var fault *Error
	if _, err := client.Ask(context.Background(), &Request{}, func(string) {}, nil); !errors.As(err, &fault) || fault.Status != 503 || len(f.asked) != 5 {
		t.Errorf("%v after %d requests", err, len(f.asked))
	}
}

func TestUnknownModelsAndMissingKeysAreReported(t *testing.T) {
	for _, text := range []string{"", "gpt-5", "openai:", "closedai:x"} {
		if _, err := ParseSpec(text); err == nil {
			t.Errorf("%q is a model", text)
		}
	}
	none := func(string) string { return "" }
	for spec, want := range map[string]string{"gemini:g": "GEMINI_API_KEY or GOOGLE_API_KEY", "compatible:m": "--base-url"} {
		s, err := ParseSpec(spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(s, Options{Getenv: none}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", spec, err)
		}
	}
	if _, err := Open(Spec{"ollama", "m"}, Options{Getenv: none}); err != nil {
		t.Errorf("Ollama needs no key: %v", err)
	}
	if _, err := Open(Spec{"openai", "m"}, Options{Getenv: none, BaseURL: "localhost:1"}); err == nil {
		t.Error("an address without a scheme is taken")
	}
}

func TestErrorsOfAnAPIAreRead(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"no","type":"t"}}`:                  "t: no",
		`[{"error":{"code":400,"message":"no","status":"BAD"}}]`: "BAD: no",
		`{"error":"no"}`: "no",
	} {
		if e := faultOf([]byte(body)); e == nil || !strings.HasSuffix(e.Error(), want) {
			t.Errorf("%s: %v", body, e)
		}
	}
	for _, body := range []string{"", "{}", `{"error":null}`, "x", "[]"} {
		if e := faultOf([]byte(body)); e != nil {
			t.Errorf("%q: %v", body, e)
		}
	}
}

func TestAMalformedStreamIsAnError(t *testing.T) {
	for stream, wire := range map[string]Wire{
		`data: {"type":"message_start","message":{}}

data: {"type":"content_block_start","index":0}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}

data: {"type":"message_stop"}

`: anthropic{},
		`data: {"type":"response.output_item.done","item":{"type":"message"}}

data: {"type":"response.completed","response":null}

`: responses{},
	} {
		a, err := Assemble(strings.NewReader(stream), wire.Stream(func(string) {}))
		if invalid := (*shapeError)(nil); !errors.As(err, &invalid) {
			t.Errorf("%T: %+v, %v", wire, a, err)
		}
	}
}

func FuzzStreams(f *testing.F) {
	all := recorded(f)
	for name := range all {
		f.Add(string(read(f, name+".sse")))
	}
	wires := []Wire{chat{}, responses{}, anthropic{}, gemini{}}
	f.Fuzz(func(t *testing.T, stream string) {
		for _, wire := range wires {
			a, err := Assemble(strings.NewReader(stream), wire.Stream(func(string) {}))
			if err != nil {
				continue
			}
			if !json.Valid(a.Body) || slices.ContainsFunc(a.Messages, func(m json.RawMessage) bool { return !json.Valid(m) }) {
				t.Errorf("%T: %s, %s", wire, a.Body, a.Messages)
			}
		}
	})
}

func FuzzAnswers(f *testing.F) {
	for name := range recorded(f) {
		f.Add(read(f, name+".json"))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, wire := range []Wire{chat{}, responses{}, anthropic{}, gemini{}} {
			if a, err := wire.Read(body); err == nil && slices.ContainsFunc(a.Messages, func(m json.RawMessage) bool { return !json.Valid(m) }) {
				t.Errorf("%T: %s", wire, a.Messages)
			}
		}
	})
}
