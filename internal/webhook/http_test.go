package webhook

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/schema"
)

func TestRetryKeepsTheIDAndSignsAgain(t *testing.T) {
	srv, requests := serve(t, status(500, 502, 204))
	c := newCounter()
	o := local(newMemory())
	o.Count = c.count
	s := start(t, o)
	send(t, s, "msg_1", srv.URL+"/hook?x=1")
	c.wait(t, Delivered)
	first := within(t, "request 1", requests)
	for n := 2; n <= 3; n++ {
		r := within(t, "a request", requests)
		if r.header.Get(headerID) != "msg_1" || cmp.Diff(first.body, r.body) != "" {
			t.Errorf("request %d: %v\n%s", n, r.header, r.body)
		}
	}
	if want := `{"type":"call.succeeded","timestamp":"2026-03-01T12:00:00Z","data":{"id":"call_1"}}`; string(first.body) != want {
		t.Errorf("%s", first.body)
	}
	if first.header.Get("Content-Type") != "application/json" || c.of(Retried) != 2 {
		t.Errorf("%v, %v", first.header, c.n)
	}
}

func TestHangingReceiverEndsAtTheTimeout(t *testing.T) {
	release := make(chan struct{})
	hang := func(r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}
	noAnswer, _ := serve(t, func(_ int, _ http.ResponseWriter, r *http.Request) { hang(r) })
	noEnd, _ := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		_ = http.NewResponseController(w).Flush()
		hang(r)
	})
	t.Cleanup(func() { close(release) })
	c := newCounter()
	o := local(newMemory())
	// The next attempt is far away, so the list tells of the first one.
	o.Count, o.Timeout, o.Schedule = c.count, 200*time.Millisecond, []time.Duration{time.Hour}
	s := start(t, o)
	send(t, s, "m1", noAnswer.URL)
	c.wait(t, Retried)
	checkContains(t, only(t, s.Deliveries(schema.AllTenants(), false)).LastError, "did not answer within 0.2 s")
	send(t, s, "m2", noEnd.URL)
	c.wait(t, Retried)
}

func TestAnEndlessBodyIsReadInPart(t *testing.T) {
	srv, _ := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		for {
			if _, err := w.Write(make([]byte, 32<<10)); err != nil {
				return
			}
		}
	})
	c := newCounter()
	o := local(newMemory())
	o.Count, o.Timeout = c.count, time.Hour // it is not the timeout that ends the reading
	send(t, start(t, o), "m1", srv.URL)
	c.wait(t, Delivered)
}

func TestStatus410Or404EndsTheDelivery(t *testing.T) {
	for code, want := range map[int]string{410: "accepts no more", 404: "answered 404"} {
		srv, requests := serve(t, status(code))
		c := newCounter()
		o := local(newMemory())
		o.Count = c.count
		s := start(t, o)
		send(t, s, "m1", srv.URL)
		c.wait(t, Dead)
		checkContains(t, only(t, s.Deliveries(schema.AllTenants(), true)).Dead, want)
		if len(requests) != 1 {
			t.Errorf("%d: %d requests", code, len(requests))
		}
	}
}

func TestRetryAfterHeaderIsRespected(t *testing.T) {
	srv, requests := serve(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	c := newCounter()
	o := local(newMemory())
	o.Count = c.count
	s := start(t, o)
	began := time.Now()
	send(t, s, "m1", srv.URL)
	c.wait(t, Delivered)
	if d := time.Since(began); d < time.Second || len(requests) != 2 {
		t.Errorf("delivered after %v with %d requests", d, len(requests))
	}
}

func TestErrorsDoNotContainAddresses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	_ = l.Close()
	unexpected := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(unexpected.Close)
	unexpected.Config.ErrorLog = nil
	plain, _ := serve(t, status(200))
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
		}
	}))
	t.Cleanup(cut.Close)
	p := newGuardedPoster(t, Rules{AllowPrivate: true, AllowedHosts: []string{"nowhere.example", "*.example"}}, names(t, stubNames))
	p.timeout = time.Minute
	for url, want := range map[string]string{
		"http://" + closed:         "refused the connection",
		unexpected.URL:             "certificate cannot be trusted",
		"https" + plain.URL[4:]:    "",
		cut.URL:                    "failed before it answered",
		"http://nowhere.example/":  "has no address",
		"http://169.254.169.254/x": "internal network",
	} {
		a := p.post(t.Context(), request{id: "m", url: url, body: []byte("{}")})
		if a.reason == "" || strings.Contains(a.reason, "127.0.0.1") || !strings.Contains(a.reason, want) {
			t.Errorf("%s: %+v", url, a)
		}
	}
}

func TestTLSIsVerifiedWithTheGivenRoots(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(srv.Close)
	c := newCounter()
	o := local(newMemory())
	o.Count, o.Roots = c.count, srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	s := start(t, o)
	send(t, s, "m1", srv.URL)
	c.wait(t, Delivered)
}
