package session

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/launch"
)

// talker is a server of the SDK with sessions, whose tool asks its caller.
func talker(t *testing.T) (*mcp.Server, launch.Spec) {
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
	_, spec := talker(t)
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

// word is what a caller heard.
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

func canBeAsked(id string) Caller {
	return CallerOf(id, []byte(`{"_meta":{"`+metaCapabilities+`":{"elicitation":{}},"`+metaLogLevel+`":"info"}}`))
}

func TestAServerAsksTheCallerWhoseCallRunsAndGetsTheAnswer(t *testing.T) {
	o := openOwn(t)
	one := takeOwn(t, o, canBeAsked("a"))
	heard := make(chan word, 10)
	over := make(chan Outcome, 1)
	one.Do(asker(heard), func(_ *Request, out Outcome) { over <- out })
	if got := <-heard; got.number != 0 || !strings.Contains(got.text, `"notifications/message"`) || !strings.Contains(got.text, "about to ask") {
		t.Errorf("%+v", got)
	}
	got := <-heard
	if got.number == 0 || !strings.HasPrefix(got.text, `{"method":"elicitation/create","params":{`) {
		t.Fatalf("%+v", got)
	}
	one.Answer(got.number+1, []byte(`{"result":{"action":"accept"}}`)) // to nothing
	one.Answer(got.number, []byte(`{"result":{"action":"decline"}}`))
	one.Answer(got.number, []byte(`{"result":{"action":"accept"}}`)) // too late
	if out := must(t, <-over); !strings.Contains(string(out.Body), "decline") {
		t.Errorf("%s", out.Body)
	}
	o.Release(one, true)
}

func TestACallerThatCannotBeAskedIsNot(t *testing.T) {
	o := openOwn(t)
	one := takeOwn(t, o, Caller{ID: "a"})
	heard := make(chan word, 10)
	if out := once(t, one.Single, asker(heard)); !out.ToolError || len(heard) != 0 {
		t.Errorf("%+v; %d words were heard", out, len(heard))
	}
	o.Release(one, true)
}

func TestASessionStaysForItsCallerAndIsNobodyElses(t *testing.T) {
	o := openOwn(t)
	first := takeOwn(t, o, canBeAsked("a"))
	if other := takeOwn(t, o, canBeAsked("a")); other == first {
		t.Error("two calls at once have one session")
	} else {
		o.Release(other, false)
	}
	o.Release(first, true)
	if other := takeOwn(t, o, canBeAsked("b")); other == first {
		t.Error("another caller got the session")
	} else {
		o.Release(other, true)
	}
	if again := takeOwn(t, o, canBeAsked("a")); again != first {
		t.Error("the session did not stay for its caller")
	} else {
		o.Release(again, true)
	}
	if n := o.Sessions(); n != 2 {
		t.Errorf("%d sessions are open", n)
	}
}

func TestASessionWithAnOpenQuestionIsNotUsedAgain(t *testing.T) {
	o := openOwn(t)
	one := takeOwn(t, o, canBeAsked("a"))
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

func TestNoMoreSessionsAreOpenedThanThereMayBe(t *testing.T) {
	o := openOwn(t)
	o.open = mostOwn - 1
	idle := takeOwn(t, o, canBeAsked("a"))
	if _, err := o.Take(t.Context(), canBeAsked("b")); err == nil {
		t.Fatal("one more was opened")
	}
	o.Release(idle, true)
	o.Release(takeOwn(t, o, canBeAsked("b")), true) // the unused one goes for it
	select {
	case <-idle.s.dead:
	case <-time.After(patience):
		t.Error("the unused session is open still")
	}
}

func TestAChangeOfAResourceIsToldWhileSomebodyWantsToHear(t *testing.T) {
	server, spec := talker(t)
	told := make(chan []string, 10)
	p := open(t, Config{Spec: spec, Updated: func(uris []string) { told <- uris }})
	p.ready()
	// A subscription is made in the background, so the change comes again and again.
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
