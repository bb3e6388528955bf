// Package models_test decodes the responses that Callyard's agent decodes with the official
// libraries of the model APIs, and compares the results.
package models_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/agent/model"
	"github.com/callyard/callyard/internal/agent/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	system = "Be brief, in “quotes” & <tags>."
	prompt = "Do it: Grüße & <b>🌍</b>"
)

var tools = []string{"s__one", "s__two"}

// reading is the content of a response as decoded by a client.
type reading struct {
	Text                  string
	Calls                 []call
	Stop                  string
	Input, Output, Cached int64 // tokens
}

// call is a tool call. Arguments are the bytes that the model wrote or, if a library has
// only values, values.
type call struct {
	ID, Name  string
	Arguments any
}

// result is the result of a tool.
type result struct {
	call   call
	text   string
	failed bool
}

// library is a client in one conversation. ask sends the conversation so far with the results
// of the calls of the last response, and stores the response in its own types.
type library interface {
	ask(ctx context.Context, results []result, stream bool) (reading, error)
}

// wire is an API with its official library.
type wire struct {
	spec   string // of our client
	tools  string // in the form of the API
	stops  []string
	open   func(t *testing.T, api *httptest.Server) library
	values bool // the library has arguments only as values
}

var wires = []wire{
	{
		spec:  "openai:m",
		tools: `[{"type":"function","function":{"name":"s__one","parameters":{"type":"object"}}},{"type":"function","function":{"name":"s__two","parameters":{"type":"object"}}}]`,
		stops: []string{"length", "content_filter"}, open: openChat,
	},
	{
		spec:  "responses:m",
		tools: `[{"type":"function","name":"s__one","parameters":{"type":"object"}},{"type":"function","name":"s__two","parameters":{"type":"object"}}]`,
		stops: []string{"max_output_tokens", "content_filter"}, open: openResponses,
	},
	{
		spec:  "anthropic:m",
		tools: `[{"name":"s__one","input_schema":{"type":"object"}},{"name":"s__two","input_schema":{"type":"object"}}]`,
		stops: []string{"max_tokens", "refusal"}, open: openAnthropic,
	},
	{
		spec:  "gemini:m",
		tools: `[{"functionDeclarations":[{"name":"s__one","parameters":{"type":"object"}},{"name":"s__two","parameters":{"type":"object"}}]}]`,
		stops: []string{"MAX_TOKENS", "SAFETY"}, open: openGemini, values: true,
	},
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// conversation returns a random script of responses with thoughts, texts and calls.
func conversation(r *rand.Rand, stops []string) (script modeltest.Script) {
	text := func() string {
		return pick(r, "", "I look.", "Grüße & <b>“quotes”</b> 🌍", strings.Repeat("long ", 40), "line\nbreak\tand \\u0041 \u2028 \x7f", " spaces ", "👩‍👩‍👧 e\u0301", `{"a":1}`)
	}
	arguments := func() string {
		return pick(r, "{}", `{"a":1,"b":[true,null,"x\"y"]}`, `{"n":12345678901234567890,"f":1.50,"e":1E2,"z":-0}`, `{"text":"`+strings.Repeat("é🌍", 30)+`"}`,
			`{"h":"<a href='x'>&amp;</a>","u":"\u00e9\ud83c\udf0d\/\n"}`, `{ "spaced" : [ 1 , 2 ] }`, `{"":{"":[[],{}]}}`)
	}
	id := 0
	for range 1 + r.IntN(4) {
		t := modeltest.Turn{Text: text(), Piece: 1 + r.IntN(20)}
		if r.IntN(2) == 0 {
			t.Thought = pick(r, "Let me think about <that>.", "Überlegen & “denken” 🌍 \n")
		}
		for range 1 + r.IntN(4) {
			t.Calls = append(t.Calls, modeltest.Call{ID: fmt.Sprintf("call_%d", id), Name: pick(r, tools...), Arguments: arguments()})
			id++
		}
		script = append(script, t)
	}
	last := modeltest.Turn{Text: "The end: 🌍 & <b>.", Piece: 1 + r.IntN(20)}
	if r.IntN(2) == 0 {
		last.Thought = "Done."
	}
	if r.IntN(3) == 0 {
		last.Stop = pick(r, stops...)
	}
	return append(script, last)
}

// ours is the agent's client in a conversation.
type ours struct {
	client *model.Client
	tools  json.RawMessage
	log    []json.RawMessage
}

func openOurClient(t *testing.T, w *wire, api *httptest.Server) *ours {
	t.Helper()
	spec, err := model.ParseSpec(w.spec)
	if err != nil {
		t.Fatal(err)
	}
	client, err := model.Open(spec, model.Options{BaseURL: api.URL, Getenv: func(string) string { return "" }, HTTP: api.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return &ours{client, json.RawMessage(w.tools), []json.RawMessage{client.Wire.User(prompt)}}
}

func (o *ours) ask(ctx context.Context, results []result, stream bool) (reading, error) {
	var messages []json.RawMessage
	for _, r := range results {
		messages = append(messages, o.client.Wire.Result(model.Call{ID: r.call.ID, Name: r.call.Name}, r.text, r.failed))
	}
	if len(messages) > 0 {
		o.log = append(o.log, o.client.Wire.Join(messages)...)
	}
	var shown strings.Builder
	say := func(piece string) { shown.WriteString(piece) }
	if !stream {
		say = nil
	}
	a, err := o.client.Ask(ctx, &model.Request{System: system, Messages: o.log, Tools: o.tools, MaxOutput: 1000}, say, nil)
	if err != nil {
		return reading{}, err
	}
	if stream && shown.String() != a.Text {
		return reading{}, fmt.Errorf("the pieces of the text are %q, the text is %q", shown.String(), a.Text)
	}
	o.log = append(o.log, a.Messages...)
	is := reading{Text: a.Text, Stop: a.Stop, Input: a.Usage.Input, Output: a.Usage.Output, Cached: a.Usage.Cached}
	for _, c := range a.Calls {
		is.Calls = append(is.Calls, call{c.ID, c.Name, string(c.Arguments)})
	}
	return is, nil
}

// valued replaces the bytes of arguments with values.
func (r reading) valued(t *testing.T) reading {
	t.Helper()
	calls := make([]call, len(r.Calls))
	for i, c := range r.Calls {
		var v any
		if err := json.Unmarshal([]byte(c.Arguments.(string)), &v); err != nil {
			t.Fatalf("the arguments of %s: %v", c.ID, err)
		}
		calls[i] = call{c.ID, c.Name, v}
	}
	if len(calls) > 0 {
		r.Calls = calls
	}
	return r
}

// TestOfficialGoLibrariesDecodeTheSame runs the same random conversations with the agent's
// client and with the official library, turn by turn, each with a separate strict server.
// Both must decode the same content, and neither may be refused. This proves that the server is
// not stricter than the libraries' requests, and that our requests are valid.
func TestOfficialGoLibrariesDecodeTheSame(t *testing.T) {
	held, asked := 0, 0
	for i := range wires {
		w := &wires[i]
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s streamed %t", w.spec, stream), func(t *testing.T) {
				for seed := range uint64(each) {
					asked += compare(t, w, w.open, w.values, seed, stream)
					held++
				}
			})
		}
	}
	t.Logf("%d conversations, %d answers of each client", held, asked)
}

// each is the number of conversations for each API, with and without streaming: 240 in all.
const each = 30

// sameJSON compares JSON, with numbers compared digit by digit.
func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var values [2]any
	for i, text := range []string{a, b} {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&values[i]); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// compare runs one conversation. If values is set, the library has arguments only as values,
// with numbers as float64.
func compare(t *testing.T, w *wire, open func(*testing.T, *httptest.Server) library, values bool, seed uint64, stream bool) int {
	t.Helper()
	script := conversation(rand.New(rand.NewPCG(seed, 21)), w.stops)
	servers := [2]*modeltest.Server{modeltest.New(script), modeltest.New(script)}
	apis := [2]*httptest.Server{httptest.NewServer(servers[0]), httptest.NewServer(servers[1])}
	for _, api := range apis {
		defer api.Close()
		defer api.Client().CloseIdleConnections()
	}
	we, they := openOurClient(t, w, apis[0]), open(t, apis[1])
	var results []result
	for n, turn := range script {
		is, err := we.ask(t.Context(), results, stream)
		if err != nil {
			t.Fatalf("seed %d, turn %d: ours: %v", seed, n, err)
		}
		want, err := they.ask(t.Context(), results, stream)
		if err != nil {
			t.Fatalf("seed %d, turn %d: the library: %v; refused: %v", seed, n, err, servers[1].Refused())
		}
		same := is
		if values {
			same = is.valued(t)
		}
		if !reflect.DeepEqual(same, want) {
			t.Fatalf("seed %d, turn %d: we read\n%+v, the library\n%+v", seed, n, same, want)
		}
		if len(is.Calls) != len(turn.Calls) || is.Text != turn.Text {
			t.Fatalf("seed %d, turn %d: both read\n%+v of the answer\n%+v", seed, n, is, turn)
		}
		results = nil
		for i, c := range is.Calls {
			if wrote := turn.Calls[i]; c.Name != wrote.Name || c.ID != wrote.ID && c.ID != "" || !sameJSON(t, c.Arguments.(string), wrote.Arguments) {
				t.Fatalf("seed %d, turn %d: both read the call %+v of %+v", seed, n, c, wrote)
			}
			results = append(results, result{c, fmt.Sprintf("Result %d of %s: “ö” & <b>🌍", i, c.Name), i == 2})
		}
	}
	for i, s := range servers {
		if len(s.Refused()) > 0 || len(s.Asked()) != len(script) {
			t.Fatalf("seed %d: server %d answered %d of %d requests, and refused %v", seed, i, len(s.Asked()), len(script), s.Refused())
		}
	}
	return len(script)
}
