package session

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/pkg/schema"
)

// askingServer returns a server of the SDK with sessions, whose tool asks its caller.
func askingServer(t *testing.T) (*mcp.Server, launch.Spec) {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "talker", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	server.AddResource(&mcp.Resource{URI: "demo://one", Name: "one"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{}, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
		_ = r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "warning", Data: "about to ask"}) //nolint:staticcheck // deprecated in 2026-07-28, and what the older revisions have
		got, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Who?"})
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: got.Action}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	h := httptest.NewServer(handler)
	t.Cleanup(h.Close)
	return server, launch.Spec{ID: "talker", Type: "http", URL: h.URL}
}

func openOwn(t *testing.T) *Own {
	t.Helper()
	_, spec := askingServer(t)
	o := OpenOwn(Config{Spec: spec}, nil, slog.New(slog.DiscardHandler))
	t.Cleanup(o.Close)
	return o
}

func takeOwn(t *testing.T, o *Own, c Caller) *Owned {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	one, err := o.Take(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	return one
}

// word is a message that a caller received.
type word struct {
	number int64
	text   string
}

func asker(heard chan word) *Request {
	return &Request{CallID: "call_1", Name: "ask", Params: []byte(`{}`), Said: func(number int64, message []byte) bool {
		heard <- word{number, string(message)}
		return true
	}}
}

func askableCaller(id string) Caller {
	return CallerOf(id, []byte(`{"_meta":{"`+mcpwire.MetaClientCapabilities+`":{"elicitation":{}},"`+mcpwire.MetaLogLevel+`":"info"}}`))
}

func TestServerRequestReachesTheCallerAndIsAnswered(t *testing.T) {
	o := openOwn(t)
	one := takeOwn(t, o, askableCaller("a"))
	heard := make(chan word, 10)
	over := make(chan Outcome, 1)
	one.Do(asker(heard), func(_ *Request, out Outcome) { over <- out })
	if got := <-heard; got.number != 0 || !strings.Contains(got.text, `"notifications/message"`) || !strings.Contains(got.text, "about to ask") {
		t.Errorf("%+v", got)
	}
	got := <-heard
	if got.number == 0 || !strings.HasPrefix(got.text, fmt.Sprintf(`{"id":%d,"method":"elicitation/create","params":{`, got.number)) {
		t.Fatalf("%+v", got)
	}
	one.Answer(got.number+1, []byte(`{"result":{"action":"accept"}}`)) // to no question
	one.Answer(got.number, []byte(`{"result":{"action":"decline"}}`))
	one.Answer(got.number, []byte(`{"result":{"action":"accept"}}`)) // too late
	if out := must(t, <-over); !strings.Contains(string(out.Body), "decline") {
		t.Errorf("%s", out.Body)
	}
	o.Release(one, true)
}

func TestCallerLearnsThatTheServerCanceledItsRequest(t *testing.T) {
	server, spec := askingServer(t)
	impatient, learned := make(chan context.CancelFunc, 1), make(chan struct{})
	mcp.AddTool(server, &mcp.Tool{Name: "lose patience"}, func(ctx context.Context, r *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
		ctx, cancel := context.WithCancel(ctx)
		impatient <- cancel
		_, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Who?"})
		<-learned // the SDK does not send the cancellation after the result
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint("nobody answered: ", err != nil)}}}, nil, nil
	})
	o := OpenOwn(Config{Spec: spec}, nil, slog.New(slog.DiscardHandler))
	t.Cleanup(o.Close)
	one := takeOwn(t, o, askableCaller("a"))
	heard, over := make(chan word, 10), make(chan Outcome, 1)
	request := asker(heard)
	request.Name = "lose patience"
	one.Do(request, func(_ *Request, out Outcome) { over <- out })
	asked := <-heard
	(<-impatient)()
	if got, want := <-heard, (word{0, fmt.Sprintf(`{"method":"notifications/cancelled","params":{"requestId":%d}}`, asked.number)}); asked.number == 0 || got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	close(learned)
	if out := must(t, <-over); !strings.Contains(string(out.Body), "nobody answered: true") {
		t.Errorf("%s", out.Body)
	}
	one.Answer(asked.number, []byte(`{"result":{"action":"accept"}}`)) // too late: it must not reach the server
	o.Release(one, true)
	if again := takeOwn(t, o, askableCaller("a")); again != one {
		t.Error("the session was not kept, as if a request were open")
	} else {
		o.Release(again, true)
	}
}

func TestServerRequestIsNotSentToIncapableCaller(t *testing.T) {
	o := openOwn(t)
	one := takeOwn(t, o, Caller{ID: "a"})
	heard := make(chan word, 10)
	if out := once(t, one.Single, asker(heard)); !out.ToolError || len(heard) != 0 {
		t.Errorf("%+v; %d words were heard", out, len(heard))
	}
	o.Release(one, true)
}

func TestASessionIsReservedForItsCaller(t *testing.T) {
	o := openOwn(t)
	first := takeOwn(t, o, askableCaller("a"))
	if other := takeOwn(t, o, askableCaller("a")); other == first {
		t.Error("two calls at once have one session")
	} else {
		o.Release(other, false)
	}
	o.Release(first, true)
	if other := takeOwn(t, o, askableCaller("b")); other == first {
		t.Error("another caller got the session")
	} else {
		o.Release(other, true)
	}
	if again := takeOwn(t, o, askableCaller("a")); again != first {
		t.Error("the session did not stay for its caller")
	} else {
		o.Release(again, true)
	}
	if n := o.Sessions(); n != 2 {
		t.Errorf("%d sessions are open", n)
	}
}

func TestSessionWithAPendingServerRequestIsNotReused(t *testing.T) {
	o := openOwn(t)
	one := takeOwn(t, o, askableCaller("a"))
	heard := make(chan word, 10)
	over := make(chan Outcome, 1)
	running := one.Do(asker(heard), func(_ *Request, out Outcome) { over <- out })
	for (<-heard).number == 0 {
	}
	running.Cancel()
	<-over
	o.Release(one, true)
	if n := o.Sessions(); n != 0 {
		t.Errorf("%d sessions are open", n)
	}
}

func TestSessionLimitIsEnforced(t *testing.T) {
	o := openOwn(t)
	o.open, o.wait = maxOwn-1, time.Millisecond
	idle := takeOwn(t, o, askableCaller("a"))
	if _, err := o.Take(t.Context(), askableCaller("b")); schema.KindOf(err) != schema.KindUnavailable {
		t.Fatalf("one more was opened, or: %v", err)
	}
	o.Release(idle, true)
	o.Release(takeOwn(t, o, askableCaller("b")), true) // evicts the unused one
	select {
	case <-idle.s.dead:
	case <-time.After(patience):
		t.Error("the unused session is open still")
	}
}

func TestConcurrentCallsOfACallerShareItsSession(t *testing.T) {
	o := openOwn(t)
	o.grow = time.Hour
	const calls = 100
	var work sync.WaitGroup
	for range calls {
		work.Go(func() {
			one := takeOwn(t, o, askableCaller("a"))
			once(t, one.Single, &Request{CallID: "call_1", Name: "ask", Params: []byte(`{}`), Said: func(number int64, _ []byte) bool {
				if number > 0 {
					one.Answer(number, []byte(`{"result":{"action":"decline"}}`))
				}
				return true
			}})
			o.Release(one, true)
		})
	}
	work.Wait()
	if n := o.Sessions(); n != 1 {
		t.Errorf("%d sessions are open", n)
	}
}

func TestACallerThatKeepsWaitingGetsOneMoreSession(t *testing.T) {
	o := openOwn(t)
	o.grow = time.Millisecond
	one := takeOwn(t, o, askableCaller("a"))
	two := takeOwn(t, o, askableCaller("a"))
	if one == two {
		t.Error("two calls at once have one session")
	}
	o.Release(one, true)
	o.Release(two, true)
}

func TestReleasedSlotGoesToACallerWithoutASession(t *testing.T) {
	o := openOwn(t)
	o.grow = time.Millisecond
	one, two := takeOwn(t, o, askableCaller("a")), takeOwn(t, o, askableCaller("a"))
	o.mu.Lock()
	o.open, o.grow = maxOwn, time.Hour
	o.mu.Unlock()
	wait := func(id string) <-chan *Owned {
		got := make(chan *Owned, 1)
		o.mu.Lock()
		before := len(o.waiting)
		o.mu.Unlock()
		go func() { got <- takeOwn(t, o, askableCaller(id)) }()
		for waits := before; waits == before; {
			o.mu.Lock()
			waits = len(o.waiting)
			o.mu.Unlock()
			runtime.Gosched()
		}
		return got
	}
	mine := wait("a")
	other := wait("b")
	o.Release(one, true)
	got := receive(t, other)
	o.Release(two, true)
	if again := receive(t, mine); again != two {
		t.Error("the last session of a caller did not go to its own call")
	}
	o.mu.Lock()
	o.open = 2
	o.mu.Unlock()
	o.Release(two, true)
	o.Release(got, true)
}

func TestFailedSessionOpenFailsAllWaitingCalls(t *testing.T) {
	h := httptest.NewServer(http.NotFoundHandler())
	defer h.Close()
	o := OpenOwn(Config{Spec: launch.Spec{ID: "missing", Type: "http", URL: h.URL}}, nil, slog.New(slog.DiscardHandler))
	t.Cleanup(o.Close)
	var work sync.WaitGroup
	for range 20 {
		work.Go(func() {
			if _, err := o.Take(t.Context(), askableCaller("a")); schema.KindOf(err) != schema.KindServerFailed {
				t.Errorf("%v", err)
			}
		})
	}
	work.Wait()
	if n := o.Sessions(); n != 0 || len(o.callers) != 0 || len(o.waiting) != 0 {
		t.Errorf("%d sessions, %d callers, %d waiting", n, len(o.callers), len(o.waiting))
	}
}

func TestCapabilitiesAreDeclaredAndServerInfoIsKept(t *testing.T) {
	seen := make(chan *mcp.ClientCapabilities, 10)
	server := mcp.NewServer(&mcp.Implementation{Name: "shy", Title: "A shy server", Version: "3"}, &mcp.ServerOptions{
		Instructions: "Be kind.",
		InitializedHandler: func(_ context.Context, r *mcp.InitializedRequest) {
			seen <- r.Session.InitializeParams().Capabilities
		},
		Capabilities:              &mcp.ServerCapabilities{Extensions: map[string]any{"io.modelcontextprotocol/ui": map[string]any{}}},
		SupportedProtocolVersions: []string{mcpwire.LegacyNewest},
	})
	mcp.AddTool(server, &mcp.Tool{Name: "t"}, func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(h.Close)
	p := open(t, Config{Spec: launch.Spec{ID: "shy", Type: "http", URL: h.URL}, Declares: []byte(`{"elicitation":{"url":{}},"sampling":{},"roots":{}}`)})
	p.ready()
	if c := receive(t, seen); c.Elicitation == nil || c.Elicitation.URL == nil || c.Sampling == nil || c.RootsV2 == nil { //nolint:staticcheck // deprecated in 2026-07-28, and what the older revisions have
		t.Errorf("%+v", c)
	}
	defs, _ := p.Definitions()
	if want := `{"serverInfo":{"name":"shy","title":"A shy server","version":"3"},"instructions":"Be kind.","extensions":{"io.modelcontextprotocol/ui":{}}}`; string(defs.About) != want {
		t.Errorf("%s", defs.About)
	}
}

// A server that does not answer some subscription requests still reports the changes of the others.
func TestUnansweredSubscriptionsDoNotDelayOthers(t *testing.T) {
	asked, told := make(chan string, 3*maxSubscribing), make(chan []string, 10)
	let := make(chan struct{})
	server := mcp.NewServer(&mcp.Implementation{Name: "silent", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler: func(ctx context.Context, r *mcp.SubscribeRequest) error {
			asked <- r.Params.URI
			if r.Params.URI != "demo://answered" {
				select {
				case <-let:
				case <-ctx.Done():
				}
			}
			return nil
		},
		UnsubscribeHandler:        func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		SupportedProtocolVersions: []string{mcpwire.LegacyNewest},
	})
	server.AddResource(&mcp.Resource{URI: "demo://answered", Name: "one"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{}, nil
	})
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(h.Close)
	p := open(t, Config{Spec: launch.Spec{ID: "silent", Type: "http", URL: h.URL}, Updated: func(uris []string) { told <- uris }})
	p.ready()
	var unanswered []string
	for i := range maxSubscribing - 1 {
		unanswered = append(unanswered, fmt.Sprint("demo://", i))
	}
	p.Watch(unanswered, time.Now().Add(time.Hour))
	for range unanswered {
		receive(t, asked)
	}
	p.Watch([]string{"demo://answered"}, time.Now().Add(time.Hour))
	if got := receive(t, asked); got != "demo://answered" {
		t.Errorf("%s", got)
	}
	p.subscriptions.updated("demo://answered")
	if got := receive(t, told); len(got) != 1 || got[0] != "demo://answered" {
		t.Errorf("%q", got)
	}
	// Beyond the limit, requests are sent when others end.
	more := []string{"demo://later/1", "demo://later/2", "demo://later/3"}
	p.Watch(more, time.Now().Add(time.Hour))
	close(let)
	for range more {
		if got := receive(t, asked); !slices.Contains(more, got) {
			t.Errorf("%s", got)
		}
	}
}

func TestResourceUpdatesAreReportedWhileWatched(t *testing.T) {
	server, spec := askingServer(t)
	told := make(chan []string, 10)
	p := open(t, Config{Spec: spec, Updated: func(uris []string) { told <- uris }})
	p.ready()
	// Watch subscribes in the background, so the change is repeated.
	p.Watch([]string{"demo://one"}, time.Now().Add(time.Hour))
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for {
		select {
		case <-tick.C:
			_ = server.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "demo://one"})
			continue
		case uris := <-told:
			if len(uris) != 1 || uris[0] != "demo://one" {
				t.Errorf("%q", uris)
			}
		case <-late:
			t.Error("the change was not told")
		}
		break
	}
}

func TestACallDoesNotWaitForAServerThatIgnoresItsLogLevel(t *testing.T) {
	t.Parallel()
	o := OpenOwn(Config{Spec: scripted("unleveled")}, launcher(t), slog.New(slog.DiscardHandler))
	defer o.Close()
	caller := Caller{ID: "a", Level: "info"}
	brief, cancel := context.WithTimeout(t.Context(), ownLevel/2)
	defer cancel()
	if one, err := o.Take(brief, caller); schema.KindOf(err) != schema.KindUnavailable && schema.KindOf(err) != schema.KindServerFailed {
		t.Errorf("after the time of its call: %v, %v", one, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 2 {
		one, err := o.Take(ctx, caller)
		if err != nil {
			t.Fatal(err)
		}
		over := make(chan Outcome, 1)
		one.Do(&Request{Name: "echo", Said: func(int64, []byte) bool { return true }}, func(_ *Request, out Outcome) { over <- out })
		must(t, <-over)
		o.Release(one, true)
	}
}
