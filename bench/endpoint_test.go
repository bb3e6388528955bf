package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// serve starts an HTTP server for the test and returns an endpoint for it and
// the number of its connections.
func serve(t *testing.T, handler http.HandlerFunc) (*Endpoint, *atomic.Int64) {
	t.Helper()
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		connections.Add(1)
		return ctx
	}
	server.Start()
	t.Cleanup(server.Close)
	e, err := NewEndpoint("test", server.URL+"/tools/echo?x=1", map[string]string{"Authorization": "Bearer secret-word"})
	if err != nil {
		t.Fatal(err)
	}
	return e, &connections
}

func dial(t *testing.T, target Target, size int) Lane {
	t.Helper()
	lane, err := target.Dial(t.Context(), 3, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lane.Close() })
	return lane
}

func TestCompleteEchoesOfEverySizeAreAccepted(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"framing chosen by net/http": echo, // content-length when small, chunks when large
		"chunked by flushes": func(w http.ResponseWriter, r *http.Request) {
			echo(flusher{w}, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, connections := serve(t, handler)
			for _, size := range []int{MinSize, 200, 20_000, 1_000_000} {
				lane := dial(t, e, size)
				for range 5 {
					if err := lane.Call(); err != nil {
						t.Fatalf("%d bytes: %v", size, err)
					}
				}
			}
			if n := connections.Load(); n != 4 {
				t.Errorf("4 lanes of 5 calls took %d connections", n)
			}
		})
	}
}

type flusher struct{ http.ResponseWriter }

func (f flusher) Write(p []byte) (int, error) {
	for from := 0; from < len(p); from += 7000 {
		if _, err := f.ResponseWriter.Write(p[from:min(from+7000, len(p))]); err != nil {
			return from, err
		}
		f.ResponseWriter.(http.Flusher).Flush()
	}
	return len(p), nil
}

func TestRequestHasMethodPathHeadersAndBody(t *testing.T) {
	var seen *http.Request
	var body []byte
	e, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen = r
		body, _ = io.ReadAll(r.Body)
		_, _ = w.Write(body)
	})
	if err := dial(t, e, 100).Call(); err != nil {
		t.Fatal(err)
	}
	if seen.Method != http.MethodPost || seen.URL.Path != "/tools/echo" || seen.URL.RawQuery != "x=1" ||
		seen.Header.Get("Content-Type") != "application/json" || seen.Header.Get("Authorization") != "Bearer secret-word" || seen.Host != e.url.Host {
		t.Errorf("got %s %s for %s with %v", seen.Method, seen.URL, seen.Host, seen.Header)
	}
	if len(body) != len(argumentsHead)+100+len(argumentsTail) || !strings.HasPrefix(string(body), argumentsHead) {
		t.Errorf("got the body %q", body)
	}
}

func TestAnswerOfAnotherCallIsAnError(t *testing.T) {
	var last string
	for name, change := range map[string]func(string) string{
		"cut":                         func(s string) string { return s[:len(s)-1] },
		"answer of the previous call": func(s string) string { before := last; last = s; return before },
		"one changed byte":            func(s string) string { return s[:50] + "?" + s[51:] },
		"empty":                       func(string) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				fmt.Fprintf(w, `{"text":"%s"}`, change(string(body[len(argumentsHead):len(body)-len(argumentsTail)])))
			})
			lane := dial(t, e, 200)
			for range 2 {
				if err := lane.Call(); !errors.Is(err, errNotWhole) {
					t.Fatalf("got %v", err)
				}
			}
		})
	}
}

func TestAClosedConnectionIsOpenedAgain(t *testing.T) {
	e, connections := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		echo(w, r)
	})
	lane := dial(t, e, 200)
	for range 3 {
		if err := lane.Call(); err != nil {
			t.Fatal(err)
		}
	}
	if n := connections.Load(); n != 3 {
		t.Errorf("3 calls took %d connections", n)
	}
}

func TestBrokenConnectionIsOneErrorAndIsReopened(t *testing.T) {
	var calls atomic.Int64
	e, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		echo(w, r)
	})
	lane := dial(t, e, 200)
	if err := lane.Call(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the aborted call ended with %v", err)
	}
	if err := lane.Call(); err != nil {
		t.Errorf("the call after it: %v", err)
	}
}

func TestRefusalHasStatusAndDetailOnly(t *testing.T) {
	for _, c := range []struct {
		status     int
		body, want string
	}{
		{503, `{"type":"x","detail":"All workers are busy."}`, "status 503: All workers are busy."},
		{500, "<html>secret</html>", "status 500"},
		{202, `{"requires_confirmation":true}`, "status 202: the call is held or runs later; load a tool that runs at once"},
	} {
		e, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		if err := dial(t, e, 200).Call(); err == nil || err.Error() != c.want {
			t.Errorf("status %d: got %v, want %q", c.status, err, c.want)
		}
	}
}

func TestHangingCallEndsWithItsContext(t *testing.T) {
	arrived, leave := make(chan struct{}), make(chan struct{})
	e, _ := serve(t, func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-leave
	})
	defer close(leave)
	ctx, cancel := context.WithCancelCause(t.Context())
	lane, err := e.Dial(ctx, 0, 200)
	if err != nil {
		t.Fatal(err)
	}
	defer lane.Close()
	reason := errors.New("enough")
	go func() {
		<-arrived
		cancel(reason)
	}()
	if err := lane.Call(); !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
}

func TestFixedArgumentsAreSentUnchanged(t *testing.T) {
	var answer atomic.Value
	answer.Store(`{"content":[]}`)
	e, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) != `{"a":9007199254740993}` {
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
		_, _ = io.WriteString(w, answer.Load().(string))
	})
	e.fixed = []byte(`{"a":9007199254740993}`)
	lane := dial(t, e, len(e.fixed))
	if err := lane.Call(); err != nil {
		t.Error(err)
	}
	answer.Store(`{"isError":true}`)
	if err := lane.Call(); !errors.Is(err, errTool) {
		t.Errorf("a tool error gave %v", err)
	}
	answer.Store(`<html>`)
	if err := lane.Call(); err == nil {
		t.Error("an answer that is no JSON was taken")
	}
}

func TestAnHTTPSEndpointThatCannotBeTrustedIsRefused(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	e, err := NewEndpoint("tls", server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Dial(t.Context(), 0, 200); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v", err)
	}
}

func TestURLsAndHeadersThatCannotWorkAreRefused(t *testing.T) {
	for _, address := range []string{"", "127.0.0.1:8080", "ftp://host/", "http://", "http://h/#pid=x", "http://h/#pid=-4"} {
		if _, err := NewEndpoint("x", address, nil); err == nil {
			t.Errorf("%q was taken", address)
		}
	}
	for key, value := range map[string]string{"": "a", "a b": "c", "a": "b\r\nc: d"} {
		if _, err := NewEndpoint("x", "http://h/", map[string]string{key: value}); err == nil {
			t.Errorf("the header %q: %q was taken", key, value)
		}
	}
	e, err := NewEndpoint("peer", "http://h/#pid=42", nil)
	if err != nil || e.PIDs()["peer"] != 42 {
		t.Errorf("the process of the fragment: %v, %v", e, err)
	}
}
