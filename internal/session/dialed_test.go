package session

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/attach/attachtest"
	"github.com/callyard/callyard/pkg/schema"
)

// listening is a program that listens for WebSocket connections.
type listening struct {
	attachtest.Program
	spec launch.Spec

	mu   sync.Mutex
	seen []http.Header
	open []*attachtest.Attached
}

// serve starts to listen. Connections end with the test.
func (l *listening) serve(t *testing.T) {
	var serving sync.WaitGroup
	l.Opened = func(a *attachtest.Attached) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open = append(l.open, a)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving.Add(1)
		defer serving.Done()
		l.mu.Lock()
		l.seen = append(l.seen, r.Header)
		l.mu.Unlock()
		if a, err := l.Accept(w, r); err == nil {
			a.Wait()
		}
	}))
	t.Cleanup(func() {
		l.kill()
		serving.Wait()
		server.Close()
	})
	l.spec = launch.Spec{ID: "socket", Type: launch.TypeWebSocket, URL: socketURL(server) + "/mcp?token=secret", Headers: map[string]string{"Authorization": "Bearer x"}}
}

// kill closes the connections as the exit of the process does.
func (l *listening) kill() {
	l.mu.Lock()
	open := l.open
	l.open = nil
	l.mu.Unlock()
	for _, a := range open {
		a.Kill()
	}
}

func socketURL(s *httptest.Server) string { return "ws" + strings.TrimPrefix(s.URL, "http") }

func TestADialedServerServesCalls(t *testing.T) {
	var l listening
	l.serve(t)
	p := open(t, Config{Spec: l.spec, Sessions: 2, InFlight: 8})
	p.until("both are there", func(s schema.Server) bool { return s.Sessions == 2 })
	if s := p.ready(); s.State != schema.StateInitialized || s.Transport != "websocket" || s.Slots != 16 {
		t.Errorf("%+v", s)
	}
	big := `{"n":12345678901234567890123,"text":"` + strings.Repeat("x", 300_000) + `"}`
	for _, args := range []string{`{"a":1}`, big} {
		if o := must(t, p.call("echo", args)); string(o.Body) != `{"content":[],"structuredContent":`+args+`}` {
			t.Errorf("got %.200s", o.Body)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.seen {
		if h.Get("Authorization") != "Bearer x" || h.Get("Sec-WebSocket-Protocol") != "mcp" {
			t.Errorf("it was dialed with %v", h)
		}
	}
}

func TestBrokenConnectionMakesCallsUnknownAndIsRedialed(t *testing.T) {
	came := make(chan string, 10)
	l := listening{Program: attachtest.Program{Call: func(ctx context.Context, _ string, args json.RawMessage) string {
		came <- string(args)
		if string(args) == `{"wait":true}` {
			<-ctx.Done()
			return ""
		}
		return `{"content":[]}`
	}}}
	l.serve(t)
	p := open(t, Config{Spec: l.spec, InFlight: 1})
	p.ready()
	_, wait := p.begin(&Request{Name: "echo", Params: []byte(`{"wait":true}`)})
	<-came
	_, next := p.begin(&Request{Name: "echo", Params: []byte(`{"later":true}`)}) // waits for the place
	l.kill()
	wantKind(t, wait(), schema.KindOutcomeUnknown, true)
	must(t, next())
	if got := <-came; got != `{"later":true}` || len(came) != 0 {
		t.Errorf("%s was sent, and %d more", got, len(came))
	}
	if s := p.Snapshot(); s.Restarts != 1 || s.State != schema.StateInitialized {
		t.Errorf("%+v", s)
	}
}

func TestDialErrorsNameTheCauseAndCallsAreNotStarted(t *testing.T) {
	elsewhere := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(elsewhere.Close)
	for name, x := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"refused":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "it answered the WebSocket upgrade with HTTP 401 Unauthorized"},
		"no such":  {func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hello")) }, "HTTP 200 OK"},
		"leads on": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, "redirects to another origin are not followed"},
		"another protocol": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Sec-WebSocket-Protocol", "soap")
			ws, err := websocket.Accept(w, r, nil)
			if err == nil {
				ws.CloseNow()
			}
		}, "selects a subprotocol that was not offered"},
	} {
		server := httptest.NewServer(x.answer)
		p := openNoClose(t, Config{Spec: launch.Spec{ID: "socket", Type: launch.TypeWebSocket, URL: socketURL(server) + "/mcp?token=secret"}})
		s := p.until("it failed", func(s schema.Server) bool { return s.State == schema.StateError })
		if !strings.Contains(s.Error, x.want) || strings.Contains(s.Error, "secret") {
			t.Errorf("%s: %s", name, s.Error)
		}
		_, wait := p.begin(&Request{Name: "echo", Params: []byte(`{}`), Timeout: 50 * time.Millisecond})
		if o := wait(); o.Err == nil || o.Started {
			t.Errorf("%s: %+v", name, o)
		}
		p.close(t)
		server.Close()
	}
}

func TestADialedServerThatDoesNotAnswerPingsIsDisconnected(t *testing.T) {
	l := listening{Program: attachtest.Program{Call: func(ctx context.Context, _ string, _ json.RawMessage) string {
		<-ctx.Done()
		return ""
	}}}
	l.serve(t)
	p := open(t, Config{Spec: l.spec, pingEvery: 20 * time.Millisecond})
	p.ready()
	l.mu.Lock()
	l.open[0].Mute()
	l.mu.Unlock()
	wantKind(t, p.call("echo", `{}`), schema.KindOutcomeUnknown, true)
}

// socketTransport serves a server of the SDK over a WebSocket connection.
type socketTransport struct{ ws *websocket.Conn }

func (s socketTransport) Connect(context.Context) (mcp.Connection, error) { return s, nil }
func (socketTransport) SessionID() string                                 { return "" }
func (s socketTransport) Close() error                                    { return s.ws.CloseNow() }

func (s socketTransport) Read(ctx context.Context) (jsonrpc.Message, error) {
	_, text, err := s.ws.Read(ctx)
	if err != nil {
		return nil, err
	}
	return jsonrpc.DecodeMessage(text)
}

func (s socketTransport) Write(ctx context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return s.ws.Write(ctx, websocket.MessageText, text)
}

func TestDialedModernServerIsDetected(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	type in struct {
		Text string `json:"text"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, a in) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: a.Text}}}, nil, nil
	})
	var serving sync.WaitGroup
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving.Add(1)
		defer serving.Done()
		ws, err := websocket.Accept(w, r, nil) // no subprotocol is selected
		if err != nil {
			return
		}
		session, err := server.Connect(context.WithoutCancel(r.Context()), socketTransport{ws}, nil)
		if err != nil {
			t.Error(err)
			return
		}
		_ = session.Wait() // the client has closed it
	}))
	t.Cleanup(func() {
		serving.Wait()
		h.Close()
	})
	p := open(t, Config{Spec: launch.Spec{ID: "sdk", Type: launch.TypeWebSocket, URL: socketURL(h)}})
	if s := p.ready(); s.Title != "sdk" || !mcpwire.IsModern(s.Protocol) {
		t.Errorf("%+v", s)
	}
	if o := must(t, p.call("echo", `{"text":"hi"}`)); !strings.Contains(string(o.Body), `"text":"hi"`) {
		t.Errorf("%s", o.Body)
	}
}
