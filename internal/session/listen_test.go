package session

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/pkg/schema"
)

// streaming is a legacy server that sends events from the test on the GET stream of its session.
type streaming struct {
	gets chan string      // the Last-Event-ID of each GET
	send chan string      // events, each for one GET; "" ends the stream
	lost chan struct{}    // closed when the server has forgotten the session
	call chan json.Number // the ids of calls; each is answered once the test allows it
	done chan struct{}
}

func startStreaming(t *testing.T) (*streaming, launch.Spec) {
	t.Helper()
	s := &streaming{gets: make(chan string, 10), send: make(chan string), lost: make(chan struct{}), call: make(chan json.Number, 10), done: make(chan struct{})}
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return s, launch.Spec{ID: "streaming", Type: "http", URL: h.URL}
}

func (s *streaming) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		select {
		case <-s.lost:
			http.Error(w, "Invalid or missing session ID", http.StatusBadRequest)
			return
		default:
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		s.gets <- r.Header.Get("Last-Event-ID")
		for {
			select {
			case text := <-s.send:
				if text == "" {
					return
				}
				_, _ = io.WriteString(w, text)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
	var m scriptMessage
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &m)
	answer := func(result string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
	switch m.Method {
	case "server/discover":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
	case "initialize":
		w.Header().Set("Mcp-Session-Id", "s1")
		answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"streaming","version":"1"}}`)
	case "tools/list":
		answer(`{"tools":[{"name":"slow","inputSchema":{"type":"object"}}]}`)
	case "tools/call":
		s.call <- json.Number(m.ID)
		select {
		case <-s.done:
		case <-r.Context().Done():
		}
		answer(`{"content":[]}`)
	case "ping":
		answer(`{}`)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func TestTheGETStreamIsResumedAndCarriesMessagesOfCalls(t *testing.T) {
	server, spec := startStreaming(t)
	p := open(t, Config{Spec: spec})
	p.ready()
	if after := receive(t, server.gets); after != "" {
		t.Errorf("the first GET goes on after %q", after)
	}
	give(t, server.send, "retry: 5\nid: e7\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n")
	give(t, server.send, "")
	if after := receive(t, server.gets); after != "e7" {
		t.Errorf("the second GET goes on after %q", after)
	}
	told := make(chan string, 10)
	_, wait := p.begin(&Request{Name: "slow", Params: []byte(`{}`), Progress: func(params []byte) { told <- string(params) }})
	token := receive(t, server.call)
	give(t, server.send, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,\"progress\":1}}\n\n", token))
	if got := receive(t, told); got != fmt.Sprintf(`{"progressToken":%s,"progress":1}`, token) {
		t.Errorf("%s", got)
	}
	close(server.done)
	must(t, wait())
}

func TestALostSessionIsDetectedOnItsStream(t *testing.T) {
	server, spec := startStreaming(t)
	p := open(t, Config{Spec: spec})
	p.ready()
	receive(t, server.gets)
	p.mu.Lock()
	first := p.live[0]
	p.mu.Unlock()
	give(t, server.send, "retry: 5\ndata:\n\n")
	close(server.lost)
	give(t, server.send, "")
	select {
	case <-first.dead:
	case <-t.Context().Done():
	}
	p.until("it has another session", func(schema.Server) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.live) > 0 && p.live[0] != first
	})
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func give[T any](t *testing.T, to chan<- T, v T) {
	t.Helper()
	select {
	case to <- v:
	case <-time.After(patience):
		t.Fatal("nobody took it")
	}
}
