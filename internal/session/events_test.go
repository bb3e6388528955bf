package session

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/callyard/callyard/internal/launch"
)

func TestMessagesOverLegacySSEShareAConnection(t *testing.T) {
	opened := 0
	h := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusAccepted)
			_, _ = w.Write([]byte("Accepted")) // as the SDK for Python does
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("event: endpoint\ndata: /messages\n\n"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	var mu sync.Mutex
	h.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		if state == http.StateNew {
			opened++
		}
	}
	h.Start()
	defer h.Close()
	client := h.Client()
	defer client.CloseIdleConnections()
	s := newSession(newPool(Config{Spec: launch.Spec{ID: "events", Type: "sse", URL: h.URL}}, slog.New(slog.DiscardHandler), func() {}))
	l, err := newEventLink(t.Context(), s, client)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	for range 10 {
		if o, ok := l.push(t.Context(), []byte(`{}`)); !ok {
			t.Fatal(o.Err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if opened > 3 { // one for the events, one for the messages, and one that the client opened in advance
		t.Errorf("10 messages opened %d connections", opened)
	}
}
