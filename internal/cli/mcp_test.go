package cli

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// mcpStub is a fake MCP endpoint with the features that the bridge uses.
type mcpStub struct {
	mu       sync.Mutex
	requests []string
	sessions int
	lost     bool // respond with 404 once
	hung     chan struct{}
	left     chan struct{}
	streams  int // event streams that GET opens, one after the other; each breaks after one event
}

func (s *mcpStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.requests = append(s.requests, fmt.Sprintf("%s %s session=%s version=%s method=%s name=%s param=%s key=%s %s", r.Method, r.URL.Path, r.Header.Get("Mcp-Session-Id"), r.Header.Get("Mcp-Protocol-Version"),
		r.Header.Get("Mcp-Method"), r.Header.Get("Mcp-Name"), r.Header.Get("Mcp-Param-Region"), r.Header.Get("Authorization"), body))
	lost := s.lost && r.Method == http.MethodPost && !strings.Contains(string(body), "initialize")
	if lost {
		s.lost = false
	}
	s.mu.Unlock()
	switch {
	case lost:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodGet && s.nextStream():
		breakAfter(w, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case strings.Contains(string(body), `"break"`):
		breakAfter(w, `{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	case strings.Contains(string(body), `"initialize"`):
		s.mu.Lock()
		s.sessions++
		w.Header().Set("Mcp-Session-Id", fmt.Sprint("s", s.sessions))
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}`)
	case strings.Contains(string(body), `"refused"`):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-31401,"message":"no"}}`)
	case strings.Contains(string(body), `"hang"`):
		w.Header().Set("Content-Type", "text/event-stream") // without it the bridge would report immediately that the response is not an answer
		_ = http.NewResponseController(w).Flush()
		close(s.hung)
		<-r.Context().Done()
		close(s.left)
	case strings.Contains(string(body), `"name":"h"`) && r.Header.Get("Mcp-Param-Region") == "":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":2,"error":{"code":-32020,"message":"The header is missing."}}`)
	case strings.Contains(string(body), `"tools/list"`):
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"h","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}}`)
	case strings.Contains(string(body), `"id"`):
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: message\ndata: {\"progress\":1}\n\n: alive\n\nevent: message\ndata: {\"big\":9007199254740993,\ndata: \"a\":1.0}\n\n")
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func (s *mcpStub) nextStream() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams--
	return s.streams >= 0
}

// breakAfter sends one event and breaks the connection.
func breakAfter(w http.ResponseWriter, event string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "data: "+event+"\n\n")
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// startBridgeTo starts a bridge to the stub.
func startBridgeTo(t *testing.T, stub *mcpStub, server string) (say func(string), hear func() string, end func()) {
	t.Helper()
	s := httptest.NewServer(stub)
	t.Cleanup(s.Close)
	c := &client{base: s.URL, key: "k", http: s.Client()}
	in, toBridge := io.Pipe()
	fromBridge, out := io.Pipe()
	done := make(chan error, 1)
	b := newBridge(c, server, out, io.Discard)
	b.pauses.First, b.pauses.Max = 0, 0
	go func() { done <- b.run(t.Context(), in) }()
	lines := bufio.NewReader(fromBridge)
	return func(line string) {
			if _, err := io.WriteString(toBridge, line+"\n"); err != nil {
				t.Error(err)
			}
		}, func() string {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSuffix(line, "\n")
		}, func() {
			if err := toBridge.Close(); err != nil {
				t.Error(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func TestTheBridgePassesModernMessagesWithTheirHeaders(t *testing.T) {
	stub := &mcpStub{}
	say, hear, end := startBridgeTo(t, stub, "two words")
	say(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `}}`)
	hear()
	say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"h","arguments":{"region":"wärme"},` + modernMeta + `}}`)
	if got := hear(); got != `{"progress":1}` {
		t.Error(got)
	}
	if got := hear(); got != `{"big":9007199254740993, "a":1.0}` {
		t.Error(got)
	}
	end()
	if got, want := stub.requests[1], "POST /mcp/two words session= version=2026-07-28 method=tools/call name=h param="+"=?base64?d8Okcm1l?="+" key=Bearer k "; !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestTheBridgeCallsAToolThatItsClientHasNotListed(t *testing.T) {
	stub := &mcpStub{}
	say, hear, end := startBridgeTo(t, stub, "")
	say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"h","arguments":{"region":"here"},` + modernMeta + `}}`)
	if got := hear(); got != `{"progress":1}` {
		t.Error(got)
	}
	hear()
	// A refusal for another reason reaches the client.
	say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"h","arguments":{},` + modernMeta + `}}`)
	if got := hear(); !strings.Contains(got, `"code":-32020`) {
		t.Error(got)
	}
	end()
	list, call := stub.requests[1], stub.requests[2]
	if !strings.Contains(list, "version=2026-07-28 method=tools/list name= param= key=Bearer k {") || !strings.Contains(list, "clientCapabilities") || !strings.Contains(call, "method=tools/call name=h param=here ") {
		t.Errorf("%s\n%s", list, call)
	}
}

func TestTheBridgeClosesACanceledModernRequest(t *testing.T) {
	stub := &mcpStub{hung: make(chan struct{}), left: make(chan struct{})}
	say, _, end := startBridgeTo(t, stub, "")
	say(`{"jsonrpc":"2.0","id":"x","method":"hang","params":{` + modernMeta + `}}`)
	<-stub.hung
	say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`)
	<-stub.left
	end()
}

func TestBridgeReopensALostSession(t *testing.T) {
	stub := &mcpStub{}
	say, hear, end := startBridgeTo(t, stub, "")
	say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`)
	hear()
	stub.mu.Lock()
	stub.lost = true
	stub.mu.Unlock()
	say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`)
	hear()
	hear()
	end()
	all := strings.Join(stub.requests, "\n")
	if !strings.Contains(all, "session=s2 version=2025-11-25") || !strings.Contains(all, "DELETE /mcp session=s2") {
		t.Error(all)
	}
}

func TestTheBridgeOpensTheStreamOfASessionAgainWhenItBreaks(t *testing.T) {
	stub := &mcpStub{streams: 3}
	say, hear, end := startBridgeTo(t, stub, "")
	say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`)
	hear()
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for range 3 {
		if got := hear(); !strings.Contains(got, "list_changed") {
			t.Error(got)
		}
	}
	end()
}

func TestTheBridgeAnswersARequestWhoseConnectionBreaks(t *testing.T) {
	say, hear, end := startBridgeTo(t, &mcpStub{}, "")
	for _, params := range []string{modernMeta, ""} {
		say(`{"jsonrpc":"2.0","id":7,"method":"break","params":{` + params + `}}`)
		if got := hear(); !strings.Contains(got, "notifications/progress") {
			t.Error(got)
		}
		if got := hear(); !strings.Contains(got, `"id":7,"error":{"code":-31503`) || !strings.Contains(got, "may have been processed") {
			t.Error(got)
		}
	}
	end()
}

func TestTheBridgeAnswersARequestThatIsRefusedBeforeItIsRead(t *testing.T) {
	say, hear, end := startBridgeTo(t, &mcpStub{}, "")
	defer end()
	say(`{"jsonrpc":"2.0","id":"a","method":"refused"}`)
	if got, want := hear(), `{"jsonrpc":"2.0","error":{"code":-31401,"message":"no"},"id":"a"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTheBridgePassesBatchesAndMessagesWithOddParams(t *testing.T) {
	stub := &mcpStub{}
	say, hear, end := startBridgeTo(t, stub, "")
	defer end()
	for _, line := range []string{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":5}}`, `{"jsonrpc":"2.0","id":3,"method":"x","params":[1]}`} {
		say(line)
		if got := hear() + hear(); got != `{"progress":1}{"big":9007199254740993, "a":1.0}` {
			t.Errorf("%s: %s", line, got)
		}
		if last := stub.requests[len(stub.requests)-1]; !strings.HasSuffix(last, " "+line) {
			t.Errorf("the endpoint gets %s", last)
		}
	}
	say(`{"jsonrpc":`)
	if got := hear(); !strings.Contains(got, "-32700") {
		t.Error(got)
	}
}

func TestTheBridgeReplacesALostSessionOnce(t *testing.T) {
	stub := &mcpStub{}
	s := httptest.NewServer(stub)
	defer s.Close()
	b := newBridge(&client{base: s.URL, http: s.Client()}, "", io.Discard, io.Discard)
	b.storeSession("lost", []byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`))
	for range 3 { // requests that were answered with 404 in the same session
		if !b.reopen(t.Context(), "lost") {
			t.Error("it is not reopened")
		}
	}
	if got := b.sessionID(); stub.sessions != 1 || got != "s1" {
		t.Errorf("%d sessions, the current one is %s", stub.sessions, got)
	}
}

func TestTheBridgeAnswersIfCallyardIsUnreachable(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	var out strings.Builder
	b := newBridge(&client{base: s.URL, http: http.DefaultClient}, "", &out, io.Discard)
	if err := b.run(t.Context(), strings.NewReader("{\n{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\"}\n")); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, `"id":null,"error":{"code":-32700`) || !strings.Contains(got, `"id":0,"error":{"code":-31503,"message":"Callyard is not reachable`) {
		t.Error(got)
	}
}

func TestTheConfigurationOfEachClientIsPrintedWithoutTheKey(t *testing.T) {
	for _, to := range mcpClients() {
		text, err := clientConfig(to, "http://127.0.0.1:8080/mcp/files", "files", "http://127.0.0.1:8080", true)
		if err != nil || !strings.Contains(text, "callyard-files") || !strings.Contains(text, "CALLYARD_KEY") || !strings.Contains(text, "127.0.0.1:8080") {
			t.Errorf("%s: %v %s", to, err, text)
		}
	}
	if _, err := clientConfig("other", "", "", "", false); exitCode(err) != exitUsage {
		t.Error(err)
	}
}
