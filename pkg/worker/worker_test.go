package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/launch/native"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type price struct {
	SKU      string `json:"sku" jsonschema:"article number"`
	Quantity int    `json:"quantity,omitempty"`
}

type offer struct {
	Total float64 `json:"total"`
}

func quote(_ context.Context, p price) (offer, error) {
	if p.Quantity < 0 {
		return offer{}, errors.New("the quantity must not be negative")
	}
	return offer{Total: 2.5 * float64(p.Quantity)}, nil
}

// open returns a fabric with the servers, which the test closes.
func open(t *testing.T, options ...LocalOption) *Fabric {
	t.Helper()
	f, err := Local(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func prices() *Server {
	s := NewServer("prices", ServerTitle("Prices"), Instructions("Ask for a quote."))
	Tool(s, "quote", "Returns the price of an article.", quote, ReadOnly())
	return s
}

func TestAFunctionIsAToolWithSchemasFromItsTypes(t *testing.T) {
	f := open(t, prices())
	r, err := f.Call(t.Context(), "prices", "quote", price{SKU: "a", Quantity: 4})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"content":[{"type":"text","text":"{\"total\":10}"}],"structuredContent":{"total":10}}`; string(r.Body) != want {
		t.Errorf("got  %s\nwant %s", r.Body, want)
	}
	tools, err := f.Tools(t.Context(), "openai")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"Returns the price of an article."`, `"article number"`, `"required":["sku"]`} {
		if !strings.Contains(strings.ReplaceAll(string(tools), " ", ""), strings.ReplaceAll(part, " ", "")) {
			t.Errorf("the definitions lack %s: %s", part, tools)
		}
	}
	for name, arguments := range map[string]string{"a missing member": `{}`, "a wrong type": `{"sku":1}`, "an unknown member": `{"sku":"a","color":"red"}`} {
		if _, err := f.Call(t.Context(), "prices", "quote", []byte(arguments)); schema.KindOf(err) != schema.KindInvalidArguments {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestErrorsAndPanicsBecomeToolErrors(t *testing.T) {
	s := prices()
	Tool(s, "break", "Panics.", func(context.Context, struct{}) (string, error) { panic("out of order") }, ReadOnly())
	f := open(t, s)
	r, err := f.Call(t.Context(), "prices", "quote", price{SKU: "a", Quantity: -1})
	if err != nil || !r.ToolError || !strings.Contains(string(r.Body), "must not be negative") {
		t.Errorf("an error: %v, %v", r, err)
	}
	r, err = f.Call(t.Context(), "prices", "break", nil)
	if err != nil || !r.ToolError || strings.Contains(string(r.Body), "out of order") {
		t.Errorf("a panic: %v, %v", r, err)
	}
	if _, err = f.Call(t.Context(), "prices", "quote", price{SKU: "a"}); err != nil {
		t.Errorf("after a panic: %v", err)
	}
}

func TestArgumentsReachTheFunctionUnchanged(t *testing.T) {
	s := NewServer("raw")
	Tool(s, "echo", "Returns its arguments.", func(_ context.Context, in map[string]json.RawMessage) (map[string]json.RawMessage, error) {
		return in, nil
	}, ReadOnly())
	Tool(s, "big", "Adds one.", func(_ context.Context, in struct {
		N int64 `json:"n"`
	}) (int64, error) {
		return in.N + 1, nil
	}, ReadOnly())
	f := open(t, s)
	r, err := f.Call(t.Context(), "raw", "echo", []byte(`{"n":9007199254740993,"f":1.0}`))
	if err != nil || !strings.Contains(string(r.Body), `"structuredContent":{"f":1.0,"n":9007199254740993}`) {
		t.Errorf("echo: %v, %v", r, err)
	}
	r, err = f.Call(t.Context(), "raw", "big", []byte(`{"n":9007199254740993}`))
	if err != nil || !strings.Contains(string(r.Body), `"structuredContent":{"result":9007199254740994}`) {
		t.Errorf("big: %v, %v", r, err)
	}
}

func TestAResultThatIsNotUTF8IsMadeValid(t *testing.T) {
	s := NewServer("raw")
	Tool(s, "latin", "Returns text in ISO 8859-1.", func(context.Context, struct{}) (Result, error) {
		return Structured([]byte("{\"name\":\"Z\xfcrich\"}")), nil
	}, ReadOnly())
	r, err := open(t, s).Call(t.Context(), "raw", "latin", nil)
	if err != nil || !utf8.Valid(r.Body) || !json.Valid(r.Body) || !strings.Contains(string(r.Body), `"structuredContent":{"name":"Z�rich"}`) {
		t.Errorf("%v, %s", err, r.Body)
	}
}

func TestACallThatIsNotReadOnlyFollowsThePolicy(t *testing.T) {
	var ran atomic.Int64
	s := NewServer("bank", RiskLevel(2))
	Tool(s, "pay", "Pays.", func(context.Context, struct{}) (string, error) {
		ran.Add(1)
		return "paid", nil
	})
	f := open(t, s)
	_, err := f.Call(t.Context(), "bank", "pay", nil)
	var held *HeldError
	if !errors.As(err, &held) || held.Token == "" || ran.Load() != 0 {
		t.Fatalf("the call is not held: %v", err)
	}
	r, err := f.Confirm(t.Context(), held.Token, true)
	if err != nil || !strings.Contains(string(r.Body), "paid") || ran.Load() != 1 {
		t.Errorf("confirmed: %v, %v", r, err)
	}
	if _, err = f.Confirm(t.Context(), held.Token, true); err == nil || ran.Load() != 1 {
		t.Errorf("confirmed twice: %v, ran %d times", err, ran.Load())
	}
}

func TestCancellingACallEndsTheContextOfItsFunction(t *testing.T) {
	started, ended := make(chan struct{}), make(chan struct{})
	s := NewServer("slow")
	Tool(s, "wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		close(started)
		<-ctx.Done()
		close(ended)
		return "", ctx.Err()
	}, ReadOnly())
	f := open(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := f.Call(ctx, "slow", "wait", nil)
		result <- err
	}()
	<-started
	cancel()
	<-ended
	if err := <-result; schema.KindOf(err) != schema.KindOutcomeUnknown { // it may have done part of its work
		t.Errorf("the call ended with %v", err)
	}
}

func TestFunctionIgnoringItsContextKeepsItsSlot(t *testing.T) {
	release := make(chan struct{})
	var began atomic.Bool
	s := NewServer("stuck", InFlight(1), Timeout(50*time.Millisecond))
	Tool(s, "hang", "Hangs.", func(context.Context, struct{}) (string, error) {
		began.Store(true)
		<-release
		return "", nil
	})
	f := open(t, s)
	_, err := f.Call(t.Context(), "stuck", "hang", nil)
	for schema.KindOf(err) == schema.KindUnavailable && !began.Load() { // on a busy machine the time may be over before it starts
		_, err = f.Call(t.Context(), "stuck", "hang", nil)
	}
	if schema.KindOf(err) != schema.KindOutcomeUnknown {
		t.Fatalf("the call that hangs: %v", err)
	}
	_, err = f.Call(t.Context(), "stuck", "hang", nil)
	if schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("the next call: %v", err)
	}
	close(release)
}

func TestGoexitFailsTheCallAndFreesItsSlot(t *testing.T) {
	s := NewServer("ending", InFlight(1))
	Tool(s, "end", "Ends its goroutine, as FailNow does.", func(context.Context, struct{}) (string, error) {
		runtime.Goexit()
		return "", nil
	})
	f := open(t, s)
	for range 2 {
		r, err := f.Call(t.Context(), "ending", "end", nil)
		if err != nil || !r.ToolError || !strings.Contains(string(r.Body), "it ended its goroutine") {
			t.Fatalf("got %v, %v", r, err)
		}
	}
}

func TestArgumentsOfAnyTypeAreAnObject(t *testing.T) {
	s := NewServer("open")
	Tool(s, "raw", "Returns its arguments.", func(_ context.Context, in json.RawMessage) (string, error) { return string(in), nil })
	Tool(s, "any", "Returns its arguments.", func(_ context.Context, in any) (any, error) { return in, nil })
	f := open(t, s)
	tools, err := f.Tools(t.Context(), "mcp")
	if err != nil || strings.Count(string(tools), `"inputSchema":{"type":"object"}`) != 2 {
		t.Errorf("the definitions: %s, %v", tools, err)
	}
	if r, err := f.Call(t.Context(), "open", "raw", []byte(`{"a":1}`)); err != nil || !strings.Contains(string(r.Body), `{\"a\":1}`) {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestEmbeddedMCPServerIsServed(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1.2.3"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "add", Description: "Adds a note.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Text string `json:"text"`
	}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "noted " + in.Text}}}, nil, nil
	})
	w := New("")
	s := Serve(w, server)
	if s.Name() != "notes" {
		t.Errorf("its name is %q", s.Name())
	}
	f := open(t, s)
	r, err := f.Call(t.Context(), "notes", "add", map[string]string{"text": "milk"})
	if err != nil || !strings.Contains(string(r.Body), "noted milk") {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestMethodsOfAValueAreTools(t *testing.T) {
	s := NewServer("cart")
	Methods(s, &cart{}, map[string]string{"AddItem": "Adds an item.", "Total": "Returns the sum."}, ReadOnly())
	f := open(t, s)
	for range 2 {
		if _, err := f.Call(t.Context(), "cart", "add_item", map[string]int{"cents": 150}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := f.Call(t.Context(), "cart", "total", nil)
	if err != nil || !strings.Contains(string(r.Body), `{"result":300}`) {
		t.Errorf("total: %v, %v", r, err)
	}
	if _, err = f.Call(t.Context(), "cart", "secret", nil); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("a method without a description: %v", err)
	}
}

type cart struct{ cents atomic.Int64 }

func (c *cart) AddItem(in struct {
	Cents int64 `json:"cents"`
}) error {
	c.cents.Add(in.Cents)
	return nil
}

func (c *cart) Total(context.Context) int64 { return c.cents.Load() }

func (c *cart) Secret() string { return "secret" }

func TestFaultsOfRegistrationsAreReportedTogether(t *testing.T) {
	s := NewServer("a/b", InFlight(-1), RiskLevel(7))
	Tool(s, "f", "", func(context.Context, struct{ C chan int }) (string, error) { return "", nil })
	Tool(s, "g", "", func(context.Context, struct{}) (string, error) { return "", nil })
	Tool(s, "g", "", func(context.Context, struct{}) (string, error) { return "", nil })
	Methods(s, &cart{}, map[string]string{"None": ""})
	Methods(s, nil, map[string]string{"Total": ""})
	Tool[price, offer](s, "nothing", "", nil)
	Tool(s, "number", "", func(context.Context, int) (string, error) { return "", nil })
	Tool(s, "own", "", func(context.Context, struct{}) (string, error) { return "", nil }, InputSchema([]byte(`{"type":"array"}`)))
	_, err := Local(s)
	if err == nil {
		t.Fatal("no fault was found")
	}
	for _, part := range []string{"its name holds", "chan int", `tool "g" already`, "no exported method None", "7 is not a risk level", "InFlight must be",
		"the receiver is nil", `tool "nothing" has no function`, `tool "number": the type of its arguments is int, and MCP requires a JSON object`, `tool "own": its InputSchema is not a JSON Schema with "type": "object"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the report lacks %q: %v", part, err)
		}
	}
	if err := New("").Run(t.Context()); err == nil || !strings.Contains(err.Error(), "no server") {
		t.Errorf("a worker without a server: %v", err)
	}
}

func TestToolsCanBeAddedAndRemoved(t *testing.T) {
	s := prices()
	f := open(t, s)
	changes, cancel := f.door.Catalog().Changes()
	defer cancel()
	told := make(chan string, 8)
	defer f.Watch(func(c Change) { told <- c.Type + " " + string(c.Server) + "/" + c.Tool })()
	offered := func(tool string) bool {
		_, err := f.door.Catalog().Tool("prices", tool)
		return err == nil
	}
	Tool(s, "list", "Lists articles.", func(context.Context, struct{}) ([]string, error) { return []string{"a"}, nil }, ReadOnly())
	for !offered("list") {
		<-changes
	}
	s.Remove("quote")
	for offered("quote") {
		<-changes
	}
	if _, err := f.Call(t.Context(), "prices", "list", nil); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"tool.added prices/list", "tool.removed prices/quote"} {
		if got := <-told; got != want {
			t.Errorf("told was %q, want %q", got, want)
		}
	}
}

func TestAFaultOfARegistrationOnAServedServerIsLogged(t *testing.T) {
	log := &bytes.Buffer{}
	s := prices()
	f := open(t, s, LocalLogger(slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelError}))))
	var adding sync.WaitGroup
	for range 2 {
		adding.Go(func() { Tool(s, "quote", "Is there already.", quote) })
	}
	adding.Wait()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), `has a tool \"quote\" already`); n != 2 {
		t.Errorf("%d of 2 faults are in the log: %s", n, log)
	}
}

func TestProgressAndConversationReachTheFunction(t *testing.T) {
	if Conversation(t.Context()) != "" {
		t.Error("there is a conversation outside a call")
	}
	Progress(t.Context(), 1, 2, "nobody hears it") // must not panic
	who := make(chan string, 1)
	s := NewServer("talker")
	Tool(s, "who", "Says who calls.", func(ctx context.Context, _ struct{}) (string, error) {
		Progress(ctx, 1, 2, "half")
		who <- Conversation(ctx)
		return "", nil
	}, ReadOnly())
	f := open(t, s)
	if _, err := f.Call(t.Context(), "talker", "who", nil); err != nil {
		t.Fatal(err)
	}
	if got := <-who; got != "local" {
		t.Errorf("the conversation is %q", got)
	}
}

func TestAWorkerJoinsAFleetAndDrains(t *testing.T) {
	nats, err := embedded.Start(embedded.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0", Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer nats.Close()
	joined := make(chan schema.WorkerID, 1)
	w := New(nats.URL(), Name("pricing"), Logger(quiet()), Started(func(id schema.WorkerID) { joined <- id }))
	Tool(w.Server("prices"), "quote", "Returns the price of an article.", quote, ReadOnly())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	if id := <-joined; !strings.HasPrefix(string(id), "pricing") {
		t.Errorf("it joined as %q", id)
	}
	other := NewServer("other")
	Tool(other, "none", "Does nothing.", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }, ReadOnly())
	f := open(t, other, LocalNATS(nats.URL()))
	r, err := f.Call(t.Context(), "prices", "quote", price{SKU: "a", Quantity: 2})
	if err != nil || !strings.Contains(string(r.Body), `"total":5`) {
		t.Errorf("got %v, %v", r, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestLocalPolicyAppliesToLocalCalls(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte("rules:\n  - name: no quotes\n    match: {server: prices}\n    deny: the shop is closed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := open(t, prices(), LocalPolicy(file))
	if _, err := f.Call(t.Context(), "prices", "quote", price{SKU: "a"}); schema.KindOf(err) != schema.KindForbidden {
		t.Errorf("the call ended with %v", err)
	}
}

func TestMethodNamesBecomeSnakeCaseToolNames(t *testing.T) {
	for name, want := range map[string]string{"GetHTTPStatus": "get_http_status", "Add": "add", "AddItem2": "add_item2", "ID": "id"} {
		if got := config.SnakeCase(name); got != want {
			t.Errorf("%s is %s", name, got)
		}
	}
}

func TestAToolHasTheClockAndTheSeedOfItsEpisode(t *testing.T) {
	told := withCall(t.Context(), &native.Call{Clock: "2026-01-31T12:00:00+02:00", Seed: "-7"})
	if now, ok := Clock(told); !ok || now.UTC().Format(time.RFC3339) != "2026-01-31T10:00:00Z" {
		t.Errorf("the clock is %v, %v", now, ok)
	}
	if seed, ok := Seed(told); !ok || seed != -7 {
		t.Errorf("the seed is %d, %v", seed, ok)
	}
	for name, ctx := range map[string]context.Context{"without them": withCall(t.Context(), &native.Call{Session: "s"}), "outside a call": t.Context()} {
		if _, ok := Clock(ctx); ok {
			t.Errorf("%s there is a clock", name)
		}
		if _, ok := Seed(ctx); ok {
			t.Errorf("%s there is a seed", name)
		}
	}
}
