package rest

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/frontdoor/frontdoortest"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/pkg/schema"
)

// quiet uses the log of production, in which requests are not logged.
func quiet(o *Options) { o.Log = slog.New(slog.DiscardHandler) }

// benchmarkHandler measures a call.
func benchmarkHandler(b *testing.B, h http.Handler) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	go func() {
		_ = s.Serve(l)
		close(done)
	}()
	defer func() {
		_ = s.Close()
		<-done
	}()
	body := `{"message":"` + strings.Repeat("x", 150) + `"}`
	frontdoortest.Benchmark(b, l.Addr().String(), fmt.Appendf(nil, "POST /servers/demo/tools/echo HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
}

// BenchmarkFrontDoorWithoutGate measures everything except the gate, for comparison with the next one.
func BenchmarkFrontDoorWithoutGate(b *testing.B) {
	f := openFabric(b, quiet)
	result := &schema.Result{Body: []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 150) + `"}]}`), Worker: frontdoortest.WorkerID}
	f.api.mux.HandleFunc("POST /servers/demo/tools/echo", func(w http.ResponseWriter, r *http.Request) {
		x := w.(*httpapi.Exchange)
		id := schema.NewCallID()
		_ = x.Trace(r)
		if _, err := x.ReadBody(r, 1<<20); err != nil {
			b.Error(err)
		}
		if _, err := x.Timeout(r, time.Minute); err != nil || submit.WantsEvents(r.Header["Accept"]) {
			b.Error("no")
		}
		x.Set("Callyard-Call-Id", string(id))
		x.Set("Callyard-Worker", string(result.Worker))
		x.SendJSON(http.StatusOK, result.Body)
	})
	benchmarkHandler(b, f.api)
}

// BenchmarkNetHTTPAlone measures the minimal cost of a net/http server.
func BenchmarkNetHTTPAlone(b *testing.B) {
	body := []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 150) + `"}]}`)
	benchmarkHandler(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			b.Error(err)
		}
		_, _ = w.Write(body)
	}))
}

// BenchmarkACall measures the full path to a scripted worker in this process and back.
func BenchmarkACall(b *testing.B) {
	f := openFabric(b, quiet)
	benchmarkHandler(b, f.api)
}
