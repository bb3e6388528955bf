package session

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/launch"
)

// A legacy SSE server that sends many requests and takes no replies.
func TestRepliesToAServerThatTakesNoneAreBounded(t *testing.T) {
	var mu sync.Mutex
	open, most := 0, 0
	events, goOn := make(chan string, 2000), make(chan struct{})
	send := func(id json.RawMessage, result string) {
		events <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
	}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: endpoint\ndata: /post\n\n")
			for {
				w.(http.Flusher).Flush()
				select {
				case text := <-events:
					fmt.Fprintf(w, "data: %s\n\n", text)
				case <-r.Context().Done():
					return
				}
			}
		}
		var m scriptMessage
		_ = json.NewDecoder(r.Body).Decode(&m)
		switch m.Method {
		case "initialize":
			send(m.ID, `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`)
		case "tools/list":
			send(m.ID, `{"tools":[{"name":"flood","inputSchema":{"type":"object"}}]}`)
		case "tools/call":
			for i := range 1000 {
				events <- fmt.Sprintf(`{"jsonrpc":"2.0","id":"p%d","method":"ping"}`, i)
			}
			send(m.ID, `{}`)
		case "": // a reply
			mu.Lock()
			open++
			most = max(most, open)
			mu.Unlock()
			<-goOn
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(h.Close)
	p := openNoClose(t, Config{Spec: launch.Spec{ID: "sse", Type: "sse", URL: h.URL}})
	t.Cleanup(func() { p.close(t) })
	t.Cleanup(func() { close(goOn) })
	must(t, p.call("flood", "{}"))
	polltest.Until(t, "replies arrive", func() bool { mu.Lock(); defer mu.Unlock(); return most >= maxReplied })
	mu.Lock()
	defer mu.Unlock()
	if most > maxReplied {
		t.Errorf("%d replies were sent at once", most)
	}
}
