package rest

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/frontdoor/frontdoortest"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/pkg/schema"
)

// cpu returns the CPU time of the process.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// quiet uses the log of production, in which requests are not logged.
func quiet(o *Options) { o.Log = slog.New(slog.DiscardHandler) }

// benchmarkHandler sends a call over one connection with a client of negligible cost, so that it
// measures the server.
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
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	body := `{"message":"` + strings.Repeat("x", 150) + `"}`
	request := fmt.Appendf(nil, "POST /servers/demo/tools/echo HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	in := bufio.NewReader(conn)
	b.ReportAllocs()
	began := cpu()
	for b.Loop() {
		if _, err := conn.Write(request); err != nil {
			b.Fatal(err)
		}
		length := 0
		for {
			line, err := in.ReadSlice('\n')
			if err != nil {
				b.Fatal(err)
			}
			if len(line) == 2 {
				break
			}
			if strings.HasPrefix(string(line), "Content-Length: ") {
				_, _ = fmt.Sscan(string(line[16:]), &length)
			}
		}
		if _, err := in.Discard(length); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpu()-began).Microseconds())/float64(b.N), "cpu-µs/op")
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
