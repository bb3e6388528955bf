package rest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/waits"
)

// For the race detector: the answer is being written while its request breaks.
func TestBrokenRequestDoesNotRaceWithStreamedResults(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	host := strings.TrimPrefix(f.url, "http://")
	for range 20 {
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(conn, "POST /batches?stream=true HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n", host)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body) // it ends one way or the other
		_ = res.Body.Close()
		_ = conn.Close()
		if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusBadRequest {
			t.Fatalf("the answer is %d", res.StatusCode)
		}
	}
	if strings.Contains(f.Logged.String(), "panicked") {
		t.Error(f.Logged)
	}
}

func TestBodyIsRefusedOnlyWhileMemoryIsExhausted(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	budget := bodies.New(1000, 0)
	f.api.shared = httpapi.NewShared(f.api.log, budget, waits.New(waits.All, waits.Each), f.api.o.Draining)
	body := `{"a":"` + strings.Repeat("x", 2000) + `"}`
	a := f.do("POST", "/servers/demo/tools/echo", body)
	if p := problemOf(t, a); p.Type != "/problems/unavailable" || !p.Retryable {
		t.Errorf("%s", a.body)
	}
	if a := f.do("POST", "/servers/demo/tools/echo", `{"a":1}`); a.status != 200 {
		t.Errorf("a small body is answered with %d %s", a.status, a.body)
	}
	if small, _ := budget.Left(); small != 1000 {
		t.Errorf("of the budget %d bytes are left", small)
	}
}

// A client that loses its connection before the first call does not know the batch.
func TestBatchOfARequestWithoutAnyCallEnds(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	host := strings.TrimPrefix(f.url, "http://")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = fmt.Fprintf(conn, "POST /batches HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n", host)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("the answer is %d", res.StatusCode)
	}
	polltest.Until(t, "the end of the batch", func() bool {
		var page struct {
			Batches []struct{ State, Reason string }
		}
		a := f.do("GET", "/batches", "")
		if err := json.Unmarshal(a.body, &page); err != nil || a.status != http.StatusOK || len(page.Batches) != 1 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return page.Batches[0].State == "canceled" && strings.Contains(page.Batches[0].Reason, "none of its calls was stored")
	})
}
