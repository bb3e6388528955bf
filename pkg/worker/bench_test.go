package worker

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// echoFabric is a complete fabric in this process with a Go function that returns its text.
func echoFabric(b *testing.B) *Fabric {
	b.Helper()
	s := NewServer("bench")
	type text struct {
		Text string `json:"text"`
	}
	Tool(s, "echo", "Returns its text.", func(_ context.Context, in text) (text, error) { return in, nil }, ReadOnly())
	f, err := Local(s)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	return f
}

var echoArguments = `{"text":"` + strings.Repeat("x", 100) + `"}`

func BenchmarkLocalCall(b *testing.B) {
	f := echoFabric(b)
	args := []byte(echoArguments)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := f.Call(context.Background(), "bench", "echo", args); err != nil {
				panic(fmt.Sprint(err))
			}
		}
	})
}

// BenchmarkLocalREST calls the same tool over HTTP on loopback. The 50 client connections are in
// this process too.
func BenchmarkLocalREST(b *testing.B) {
	const connections = 50
	server := httptest.NewServer(echoFabric(b).Handler())
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	request := fmt.Appendf(nil, "POST /servers/bench/tools/echo HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", address, len(echoArguments), echoArguments)
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ReportAllocs()
	b.ResetTimer()
	began := time.Now()
	var wg sync.WaitGroup
	for range connections {
		wg.Go(func() {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				b.Error(err)
				return
			}
			defer func() { _ = conn.Close() }()
			in := bufio.NewReader(conn)
			for left.Add(-1) >= 0 {
				if err := exchange(conn, in, request); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "calls/s")
}

// exchange sends a request and reads the response, which must be a result.
func exchange(conn net.Conn, in *bufio.Reader, request []byte) error {
	if _, err := conn.Write(request); err != nil {
		return err
	}
	r, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("the answer is %s", r.Status)
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err
}
