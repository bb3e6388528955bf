package session

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/pkg/schema"
)

func TestEndlessAnswerInTheHandshakeIsNotKept(t *testing.T) {
	const enough = 128 << 20
	var mu sync.Mutex
	most := 0
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		sent, block := 0, bytes.Repeat([]byte(" "), 1<<20)
		for sent < enough {
			n, err := w.Write(block)
			if sent += n; err != nil {
				break
			}
		}
		mu.Lock()
		defer mu.Unlock()
		most = max(most, sent)
	}))
	defer h.Close()
	p := openNoClose(t, Config{Spec: launch.Spec{ID: "endless", Type: "http", URL: h.URL}, MaxResult: 1 << 20})
	p.until("the start failed", func(s schema.Server) bool { return s.State == schema.StateError })
	p.close(t)
	h.Close() // waits for the requests
	if most > enough/2 {
		t.Errorf("%d MiB of one answer were read", most>>20)
	}
}
