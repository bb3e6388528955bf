package session

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/pkg/bus/porttest"
	"github.com/callyard/callyard/pkg/schema"
)

// remoteServer is a hand-written streamable HTTP server. The name of the tool selects its behavior.
type remoteServer struct {
	t      *testing.T
	modern bool
	mu     sync.Mutex
	id     int
	seen   []http.Header // headers of calls
	forgot bool
	posted []string      // bodies of messages that are not requests
	absent int           // answers to a GET that fail before the next one succeeds
	late   chan struct{} // if not nil, messages that are not requests are taken when it is closed
	left   int           // such messages whose client did not wait
	stop   chan struct{} // closed when calls may end
	hung   chan struct{} // signaled when the client has disconnected from a hanging call
}

func newRemoteServer(t *testing.T, modern bool) (*remoteServer, launch.Spec) {
	s := &remoteServer{t: t, modern: modern, stop: make(chan struct{}), hung: make(chan struct{}, 10)}
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		close(s.stop)
		h.Close()
	})
	return s, launch.Spec{ID: "remote", Type: "http", URL: h.URL + "/mcp?token=secret", Headers: map[string]string{"Authorization": "Bearer x"}}
}

const oddResult = `{ "z":1.0,"content":[{"type":"hologram","n":9007199254740993}] , "_meta":{"x":1e2},"a":"\u00e9" }`

func (s *remoteServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		if r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") == "e1" {
			s.mu.Lock()
			s.absent--
			absent := s.absent
			s.mu.Unlock()
			if absent == 0 { // as a gateway does while the server restarts
				w.WriteHeader(http.StatusBadGateway)
				return
			} else if absent > 0 {
				if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
					c.Close()
				}
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"resumed\":true}}\n\n", r.URL.Query().Get("never")+s.lastID())
			return
		}
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, _ := io.ReadAll(r.Body)
	var m scriptMessage
	if err := json.Unmarshal(body, &m); err != nil {
		s.t.Errorf("body %s: %v", body, err)
	}
	answer := func(result string) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		fmt.Fprintf(w, "\n{\"jsonrpc\":\"2.0\",\n\"id\":%s,\"result\":%s}", m.ID, result)
	}
	switch m.Method {
	case "server/discover":
		if s.modern {
			answer(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
	case "initialize":
		s.mu.Lock()
		s.id++
		w.Header().Set("Mcp-Session-Id", fmt.Sprint("s", s.id))
		s.mu.Unlock()
		answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"remote","version":"1"}}`)
	case "tools/list":
		answer(`{"tools":[{"name":"äcall","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"in":{"properties":{"n":{"type":"integer","x-mcp-header":"Depth"}}}}}}]}`)
	case "ping":
		answer(`{}`)
	case "tools/call":
		s.mu.Lock()
		s.seen = append(s.seen, r.Header.Clone())
		s.posted = append(s.posted, string(m.ID))
		s.mu.Unlock()
		s.call(w, r, &m, answer)
	default:
		s.mu.Lock()
		late := s.late
		s.mu.Unlock()
		if late != nil {
			select {
			case <-late:
			case <-r.Context().Done():
				s.mu.Lock()
				s.left++
				s.mu.Unlock()
			}
		}
		s.mu.Lock()
		s.posted = append(s.posted, string(body))
		s.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
	}
}

func (s *remoteServer) lastID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.posted[len(s.posted)-1]
}

func (s *remoteServer) call(w http.ResponseWriter, r *http.Request, m *scriptMessage, answer func(string)) {
	var params struct{ Name string }
	_ = json.Unmarshal(m.Params, &params)
	stream := func(format string, args ...any) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, format, args...)
		w.(http.Flusher).Flush()
	}
	switch params.Name {
	case "odd", "äcall":
		answer(oddResult)
	case "params":
		answer(fmt.Sprintf(`{"params":%s}`, m.Params))
	case "oddstream":
		stream(": hello\r\nid: 1\r\ndata:\r\n\r\nevent: other\ndata: {}\n\nevent: message\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"id\":%s,\"result\":%s}\r\n\r\n", m.ID, oddResult)
	case "progress":
		for i := range 20 {
			stream("data: {\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,\"progress\":%d}}\n\n", m.ID, i)
		}
		stream("data: {\"id\":%s,\"result\":{}}\n\n", m.ID)
	case "asks":
		stream("data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{}}\n\n")
		for len(s.replies()) == 0 && r.Context().Err() == nil {
			<-time.After(time.Millisecond)
		}
		stream("data: {\"id\":%s,\"result\":{}}\n\n", m.ID)
	case "cut":
		stream("data: {\"method\":\"notifications/message\"}\n\n")
	case "later": // closes the stream and lets the client reconnect
		stream("id: e1\nretry: 5\ndata:\n\n")
	case "ping": // and may take the reply later
		stream("data: {\"jsonrpc\":\"2.0\",\"id\":\"p0\",\"method\":\"ping\"}\n\n")
		stream("data: {\"id\":%s,\"result\":{}}\n\n", m.ID)
	case "half": // breaks off within the answer, and sends it again to a client that did not get it
		stream("id: e1\nretry: 5\ndata:\n\nid: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"res", m.ID)
	case "hang":
		stream(": wait\n\n")
		select {
		case <-r.Context().Done():
			s.hung <- struct{}{}
		case <-s.stop:
		}
	case "huge":
		stream("data: {\"id\":%s,\"result\":{\"a\":\"%s\"}}\n\n", m.ID, strings.Repeat("x", 1<<20))
	case "hugejson":
		answer(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`)
	case "html":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html>")
	case "drop":
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			c.Close()
		}
	case "badargs", "nosession":
		code := map[string]int{"badargs": -32602, "nosession": -32000}[params.Name]
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no valid session_id"}}`, m.ID, code)
	case "rpcerror":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"header"}}`)
	case "forget once":
		s.mu.Lock()
		first := !s.forgot
		s.forgot = true
		s.mu.Unlock()
		if !first {
			answer(oddResult)
			return
		}
		fallthrough
	case "forget":
		w.WriteHeader(http.StatusNotFound)
	default:
		var code int
		_, _ = fmt.Sscanf(params.Name, "status%d", &code)
		if _, body, ok := strings.Cut(params.Name, " "); ok {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprint(w, body)
			return
		}
		w.WriteHeader(code)
	}
}

func (s *remoteServer) replies() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, body := range s.posted {
		if strings.Contains(body, "-32601") {
			out = append(out, body)
		}
	}
	return out
}

func TestRemoteResultsKeepTheirBytes(t *testing.T) {
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprint("modern=", modern), func(t *testing.T) {
			s, spec := newRemoteServer(t, modern)
			p := open(t, Config{Spec: spec})
			for _, tool := range []string{"odd", "oddstream"} {
				o := must(t, p.call(tool, "{}"))
				want := oddResult
				if string(o.Body) != want {
					t.Errorf("%s: got  %s\nwant %s", tool, o.Body, want)
				}
			}
			args := "{\n \"z\" : 9007199254740993,\r\n\"a\":1.0}"
			o := must(t, p.call("params", args))
			if want := `"arguments":` + args; !strings.Contains(string(o.Body), want) {
				t.Errorf("got %s, want %s in it", o.Body, want)
			}
			meta := strings.Contains(string(o.Body), `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"`)
			if meta != modern {
				t.Errorf("_meta is there: %v, in the modern era: %v", meta, modern)
			}
			h := s.seen[0]
			if h.Get("Authorization") != "Bearer x" || h.Get("Accept") != "application/json, text/event-stream" || h.Get("Content-Type") != "application/json" {
				t.Errorf("headers %v", h)
			}
			if modern && (h.Get("Mcp-Method") != "tools/call" || h.Get("Mcp-Name") != "odd" || h.Get("Mcp-Protocol-Version") != "2026-07-28" || h.Get("Mcp-Session-Id") != "") {
				t.Errorf("headers %v", h)
			}
			if !modern && (h.Get("Mcp-Method") != "" || h.Get("Mcp-Protocol-Version") != "2025-11-25" || h.Get("Mcp-Session-Id") != "s1") {
				t.Errorf("headers %v", h)
			}
		})
	}
}

func TestModernHeadersRepeatToolNameAndAnnotatedArguments(t *testing.T) {
	s, spec := newRemoteServer(t, true)
	p := open(t, Config{Spec: spec})
	p.ready()
	must(t, p.call("äcall", `{"region":"eu west","in":{"n":1e3},"other":1}`))
	h := s.seen[0]
	if got := h.Get("Mcp-Name"); got != "=?base64?w6RjYWxs?=" {
		t.Errorf("Mcp-Name is %q", got)
	}
	if h.Get("Mcp-Param-Region") != "eu west" || h.Get("Mcp-Param-Depth") != "1000" {
		t.Errorf("headers %v", h)
	}
}

func TestRemoteFaultsAreReportedByKind(t *testing.T) {
	s, spec := newRemoteServer(t, false)
	p := open(t, Config{Spec: spec, MaxResult: 1 << 20})
	wantKind(t, p.call("cut", "{}"), schema.KindOutcomeUnknown, true)
	wantKind(t, p.call("html", "{}"), schema.KindOutcomeUnknown, true)
	wantKind(t, p.call("drop", "{}"), schema.KindOutcomeUnknown, true)
	wantKind(t, p.call("status202", "{}"), schema.KindOutcomeUnknown, true)
	wantKind(t, p.call("status502", "{}"), schema.KindOutcomeUnknown, true)
	wantKind(t, p.call("huge", "{}"), schema.KindResultTooLarge, true)
	wantKind(t, p.call("hugejson", "{}"), schema.KindResultTooLarge, true)
	if e := wantKind(t, p.call("rpcerror", "{}"), schema.KindProtocol, true); e.RPC.Code != -32020 {
		t.Errorf("RPC is %+v", e.RPC)
	}
	for _, tool := range []string{"status401", "status403", "status429"} {
		if e := wantKind(t, p.call(tool, "{}"), schema.KindServerFailed, false); strings.Contains(e.Detail, "secret") {
			t.Errorf("%s: %s", tool, e.Detail)
		}
	}
	must(t, p.call("odd", "{}"))
	must(t, p.call("later", "{}"))
	var got atomic.Int32
	_, wait := p.begin(&Request{Name: "progress", Progress: func([]byte) { got.Add(1) }})
	must(t, wait())
	if got.Load() != 20 {
		t.Errorf("%d of 20 progress notifications came before the result", got.Load())
	}
	must(t, p.call("asks", "{}"))
	if r := s.replies(); len(r) != 1 || !strings.Contains(r[0], `"id":"q"`) {
		t.Errorf("replies %q", r)
	}
}

func TestAnErrorOfAGatewayWithAJSONBodyIsNoAnswerOfTheServer(t *testing.T) {
	_, spec := newRemoteServer(t, false)
	p := open(t, Config{Spec: spec})
	for _, body := range []string{`{"error":"invalid_token","error_description":"expired"}`, `{"error":{"code":13,"message":"upstream","status":"INTERNAL"}}`, `{"error":true}`} {
		wantKind(t, p.call("status200 "+body, "{}"), schema.KindOutcomeUnknown, true)
		wantKind(t, p.call("status502 "+body, "{}"), schema.KindOutcomeUnknown, true)
		wantKind(t, p.call("status503 "+body, "{}"), schema.KindOutcomeUnknown, true)
		wantKind(t, p.call("status401 "+body, "{}"), schema.KindServerFailed, false)
		if e := wantKind(t, p.call("status429 "+body, "{}"), schema.KindServerFailed, false); !e.RateLimited {
			t.Errorf("429 with %s: %+v", body, e)
		}
	}
}

func TestAStreamIsResumedAfterFailedAttempts(t *testing.T) {
	s, spec := newRemoteServer(t, false)
	p := open(t, Config{Spec: spec})
	s.mu.Lock()
	s.absent = 3
	s.mu.Unlock()
	if o := must(t, p.call("later", "{}")); string(o.Body) != `{"resumed":true}` {
		t.Errorf("got %s", o.Body)
	}
	if o := must(t, p.call("half", "{}")); string(o.Body) != `{"resumed":true}` {
		t.Errorf("got %s", o.Body)
	}
	s.mu.Lock()
	s.absent = 100
	s.mu.Unlock()
	wantKind(t, p.call("later", "{}"), schema.KindOutcomeUnknown, true)
}

func TestAnAnswerDoesNotWaitForTheRepliesToItsServer(t *testing.T) {
	s, spec := newRemoteServer(t, false)
	p := open(t, Config{Spec: spec})
	p.ready()
	late := make(chan struct{})
	s.mu.Lock()
	s.late = late
	s.mu.Unlock()
	_, wait := p.begin(&Request{Name: "ping"})
	must(t, wait())
	s.mu.Lock()
	if s.left > 0 {
		t.Errorf("the call ended after %d replies were given up", s.left)
	}
	s.mu.Unlock()
	close(late)
	polltest.Until(t, "the reply arrives", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return strings.Contains(strings.Join(s.posted, ""), `"id":"p0"`)
	})
}

func TestLostRemoteSessionIsReplaced(t *testing.T) {
	s, spec := newRemoteServer(t, false)
	p := open(t, Config{Spec: spec})
	running, wait := p.begin(&Request{Name: "hang"})
	polltest.Until(t, "the call runs", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.seen) == 1 })
	// The call goes to the next session by itself, once.
	if e := wantKind(t, p.call("forget", "{}"), schema.KindServerFailed, false); !e.Retryable {
		t.Error("it is not retryable")
	}
	s.mu.Lock()
	if got := len(s.seen); got != 3 || s.seen[1].Get("Mcp-Session-Id") != "s1" || s.seen[2].Get("Mcp-Session-Id") != "s2" {
		t.Errorf("%d requests came", got)
	}
	s.mu.Unlock()
	must(t, p.call("forget once", "{}"))
	must(t, p.call("odd", "{}"))
	if got := s.seen[len(s.seen)-1].Get("Mcp-Session-Id"); got != "s4" {
		t.Errorf("the next call went to session %q", got)
	}
	running.Cancel() // it continues
	wantKind(t, wait(), schema.KindCanceled, true)
	select {
	case <-s.hung:
	case <-time.After(patience):
		t.Error("the server was not hung up on")
	}
}

func TestAnErrorAboutTheArgumentsDoesNotCostTheSession(t *testing.T) {
	s, spec := newRemoteServer(t, false)
	p := open(t, Config{Spec: spec})
	wantKind(t, p.call("badargs", "{}"), schema.KindProtocol, true)
	must(t, p.call("odd", "{}"))
	s.mu.Lock()
	if n := len(s.seen); n != 2 || s.seen[1].Get("Mcp-Session-Id") != "s1" {
		t.Errorf("%d requests came, the last to session %q", n, s.seen[n-1].Get("Mcp-Session-Id"))
	}
	s.mu.Unlock()
	wantKind(t, p.call("nosession", "{}"), schema.KindServerFailed, false)
}

func TestCancelReachesARemoteServerWhoseSessionIsReplaced(t *testing.T) {
	s, spec := newRemoteServer(t, false)
	p := open(t, Config{Spec: spec})
	running, wait := p.begin(&Request{Name: "hang"})
	other, _ := p.begin(&Request{Name: "hang"})
	polltest.Until(t, "both calls run", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.seen) == 2 })
	must(t, p.call("forget once", "{}"))
	running.Cancel()
	wantKind(t, wait(), schema.KindCanceled, true)
	wantSoon(t, s.hung, "the server is hung up on while the other call runs")
	polltest.Until(t, "it was told", func() bool { return strings.Contains(s.lastID(), `"notifications/cancelled"`) })
	other.Cancel()
}

func TestCancelReachesARemoteServer(t *testing.T) {
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprint("modern=", modern), func(t *testing.T) {
			s, spec := newRemoteServer(t, modern)
			p := open(t, Config{Spec: spec})
			r, wait := p.begin(&Request{Name: "hang"})
			polltest.Until(t, "the call runs", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.seen) == 1 })
			r.expire() // as its timer does
			wantKind(t, wait(), schema.KindOutcomeUnknown, true)
			<-s.hung
			if modern {
				return
			}
			polltest.Until(t, "it was told", func() bool { return strings.Contains(s.lastID(), `"notifications/cancelled"`) })
		})
	}
}

func TestCallToUnreachableServerIsNotStarted(t *testing.T) {
	t.Parallel()
	address := porttest.Address(t)
	for _, kind := range []string{"http", "sse"} {
		t.Run(kind, func(t *testing.T) {
			p := open(t, Config{Spec: launch.Spec{ID: "gone", Type: kind, URL: "http://" + address + "/x?token=secret"}})
			e := wantKind(t, p.call("echo", "{}"), schema.KindServerFailed, false)
			if !strings.Contains(e.Detail, "refused") || strings.Contains(e.Detail, "secret") {
				t.Errorf("got %q", e.Detail)
			}
		})
	}
}

func TestTheErrorOfARemoteServerNamesItsAnswerAndTheFix(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		kind   string
		want   string
	}{
		"credentials": {http.StatusUnauthorized, "text/plain", "it answered with HTTP 401 Unauthorized; check the credentials in its entry."},
		"address":     {http.StatusNotFound, "text/plain", "it answered with HTTP 404 Not Found; check its address."},
		"broken":      {http.StatusBadGateway, "text/html", "it answered with HTTP 502 Bad Gateway."},
		"page":        {http.StatusOK, "text/html; charset=utf-8", "it answered with a web page, not with MCP; check its address."},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, "<html>")
			}))
			defer srv.Close()
			p := open(t, Config{Spec: launch.Spec{ID: "remote", Type: "http", URL: srv.URL}})
			s := p.until("an error", func(s schema.Server) bool { return s.State == schema.StateError })
			if want := `The server "remote" did not start: ` + c.want; s.Error != want {
				t.Errorf("got  %s\nwant %s", s.Error, want)
			}
		})
	}
}

func TestPoolRecoversWhenARemoteServerReturns(t *testing.T) {
	s, spec := newRemoteServer(t, false)
	var down atomic.Bool
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				c.Close()
			}
			return
		}
		s.ServeHTTP(w, r)
	}))
	defer front.Close()
	spec.URL = front.URL
	p := openNoClose(t, Config{Spec: spec})
	defer p.close(t)
	must(t, p.call("odd", "{}"))
	down.Store(true)
	wantKind(t, p.call("odd", "{}"), schema.KindOutcomeUnknown, true)
	p.until("it is not ready", func(s schema.Server) bool { return s.State != schema.StateInitialized })
	down.Store(false)
	must(t, p.call("odd", "{}"))
}

func TestHangingDiscoverDoesNotBlockARemoteServer(t *testing.T) {
	s, spec := newRemoteServer(t, false)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "server/discover" {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			return
		}
		s.ServeHTTP(w, r)
	}))
	defer front.Close()
	spec.URL = front.URL
	p := openNoClose(t, Config{Spec: spec, ProbeTimeout: 100 * time.Millisecond})
	defer p.close(t)
	if got := p.ready(); got.Protocol != "2025-11-25" {
		t.Errorf("got %+v", got)
	}
}

// sdkServer is a server of the go-sdk with a few tools.
func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1.8"}, &mcp.ServerOptions{Logger: slog.New(slog.DiscardHandler)})
	add := func(name string, h mcp.ToolHandler) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, h)
	}
	text := func(s string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
	}
	add("echo", func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(string(req.Params.Arguments)), nil
	})
	add("fails", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r := text("no")
		r.IsError = true
		return r, nil
	})
	add("progress", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 10 {
			err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i + 1)})
			if err != nil {
				return nil, err
			}
		}
		return text("done"), nil
	})
	s.AddResource(&mcp.Resource{URI: "test://a", Name: "a"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "test://a", Text: "hello"}}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "p"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "hi"}}}}, nil
	})
	return s
}

func TestServersOfTheSDKWorkOverEachRemoteTransport(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	for name, c := range map[string]struct {
		kind, protocol string
		handler        func(*mcp.Server) http.Handler
	}{
		"http legacy": {"http", "2025-11-25", func(s *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Logger: quiet})
		}},
		"http modern": {"http", "2026-07-28", func(s *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Logger: quiet, Stateless: true})
		}},
		"http modern, JSON": {"http", "2026-07-28", func(s *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Logger: quiet, Stateless: true, JSONResponse: true})
		}},
		"sse": {"sse", "2025-11-25", func(s *mcp.Server) http.Handler {
			return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			server := sdkServer()
			h := httptest.NewServer(c.handler(server))
			defer h.Close()
			p := openNoClose(t, Config{Spec: launch.Spec{ID: "sdk", Type: c.kind, URL: h.URL}})
			defer p.close(t)
			s := p.ready()
			if s.Protocol != c.protocol || s.Transport != c.kind {
				t.Errorf("got %+v", s)
			}
			args := `{"z":9007199254740993,"a":1.0}`
			o := must(t, p.call("echo", args))
			var result struct{ Content []struct{ Text string } }
			if err := json.Unmarshal(o.Body, &result); err != nil || result.Content[0].Text != args {
				t.Errorf("got %s, %v", o.Body, err)
			}
			if !must(t, p.call("fails", "{}")).ToolError {
				t.Error("isError was not seen")
			}
			wantKind(t, p.call("unknown", "{}"), schema.KindProtocol, true)
			if !strings.Contains(name, "JSON") { // the SDK then drops progress
				var got atomic.Int32
				_, wait := p.begin(&Request{Name: "progress", Progress: func([]byte) { got.Add(1) }})
				must(t, wait())
				if got.Load() != 10 {
					t.Errorf("%d of 10 progress notifications came before the result", got.Load())
				}
			}
			_, wait := p.begin(&Request{Method: schema.MethodReadResource, Params: []byte(`{"uri":"test://a"}`)})
			if o := must(t, wait()); !strings.Contains(string(o.Body), "hello") {
				t.Errorf("got %s", o.Body)
			}
			_, wait = p.begin(&Request{Method: schema.MethodGetPrompt, Params: []byte(`{"name":"p","_meta":{"mine":1}}`)})
			must(t, wait())
			defs, sum := p.Definitions()
			if len(defs.Tools) != 3 || len(defs.Resources) != 1 || len(defs.Prompts) != 1 {
				t.Errorf("got %+v", defs)
			}
			server.AddTool(&mcp.Tool{Name: "more", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{}, nil
			})
			p.until("the change was seen", func(s schema.Server) bool { return s.Digest != sum })
			// Many concurrent calls, all on one session.
			var work sync.WaitGroup
			for i := range 50 {
				work.Go(func() {
					want := fmt.Sprintf(`{\"i\":%d}`, i)
					_, wait := p.begin(&Request{Name: "echo", Params: []byte(fmt.Sprintf(`{"i":%d}`, i))})
					if o := wait(); o.Err != nil || !strings.Contains(string(o.Body), want) {
						t.Errorf("call %d: got %s, %v", i, o.Body, o.Err)
					}
				})
			}
			work.Wait()
		})
	}
}

func TestACallWaitsForAServerThatIsBeingRestarted(t *testing.T) {
	var lc net.ListenConfig
	first, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := first.Addr().String()
	server := mcp.NewServer(&mcp.Implementation{Name: "restarted", Version: "1"}, nil)
	ran := 0
	mcp.AddTool(server, &mcp.Tool{Name: "t"}, func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
		ran++
		return &mcp.CallToolResult{}, nil, nil
	})
	serve := func(on net.Listener) *http.Server {
		h := &http.Server{Handler: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})}
		h.SetKeepAlivesEnabled(false) // so that no call uses a connection that is being closed
		go func() { _ = h.Serve(on) }()
		return h
	}
	h := serve(first)
	w := open(t, Config{Spec: launch.Spec{ID: "restarted", Type: "http", URL: "http://" + address}})
	w.ready()
	must(t, w.call("t", `{}`))
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	_, end := w.begin(&Request{Name: "t", Params: []byte(`{}`)})
	w.until("it is noticed that nothing listens", func(s schema.Server) bool { return s.State != schema.StateInitialized })
	second, err := lc.Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	h = serve(second)
	t.Cleanup(func() { _ = h.Close() })
	if o := must(t, end()); ran != 2 || o.Err != nil {
		t.Errorf("it ran %d times: %+v", ran, o)
	}
}
