package callyard

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// refusing returns its refusals in order, then its results, and records the requests.
type refusing struct {
	refusals []func() (*http.Response, error)
	bodies   []string
}

func (r *refusing) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.bodies = append(r.bodies, string(body))
	if len(r.refusals) == 0 {
		res, _ := answer(200, "application/json", `{"content":[{"type":"text","text":"done"}],"outcome":"completed"}`)
		return res, nil
	}
	first := r.refusals[0]
	r.refusals = r.refusals[1:]
	return first()
}

// refuse answers with a problem document, or like a proxy. If after is empty, the
// response has no Retry-After.
func refuse(status int, mediaType, after string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		res, _ := answer(status, mediaType, `{"type":"/problems/x","title":"X","status":429,"detail":"Wait.","error":"Wait.","retryable":true}`)
		if after != "" {
			res.Header.Set("Retry-After", after)
		}
		return res, nil
	}
}

// partly answers as for a batch whose first calls are stored and run.
func partly() (*http.Response, error) {
	res, _ := answer(503, ours, `{"type":"/problems/unavailable","title":"X","status":503,"detail":"The first calls are stored.","error":"","retryable":false}`)
	res.Header.Set("Retry-After", "1")
	return res, nil
}

func breaks(err error) func() (*http.Response, error) {
	return func() (*http.Response, error) { return nil, err }
}

const ours = "application/problem+json"

func TestOnlyRepeatableRequestsAreRetried(t *testing.T) {
	type refusals = []func() (*http.Response, error)
	broken, unreachable := errors.New("connection reset"), &net.OpError{Op: "dial", Err: errors.New("refused")}
	for name, c := range map[string]struct {
		refusals refusals
		editors  []RequestEditorFn
		options  []ClientOption
		sent     int
		took     time.Duration // the minimum; the maximum is a third more
		status   int64         // of the refusal that reaches the caller
		err      error
	}{
		"limits of Callyard":            {refusals: refusals{refuse(429, ours, "3"), refuse(503, ours, "4")}, sent: 3, took: 7 * time.Second},
		"a third refusal":               {refusals: refusals{refuse(429, ours, "3"), refuse(503, ours, "4"), refuse(429, ours, "5")}, sent: 3, took: 7 * time.Second, status: 429},
		"three retries are configured":  {refusals: refusals{refuse(429, ours, "3"), refuse(503, ours, "4"), refuse(429, ours, "5")}, options: []ClientOption{WithRetries(3)}, sent: 4, took: 12 * time.Second},
		"retries are disabled":          {refusals: refusals{refuse(429, ours, "3")}, options: []ClientOption{WithRetries(0)}, sent: 1, status: 429},
		"Retry-After exceeds the limit": {refusals: refusals{refuse(503, ours, "61")}, sent: 1, status: 503},
		"stored in part":                {refusals: refusals{partly}, sent: 1, status: 503},
		"stored in part, with a key":    {refusals: refusals{partly}, editors: []RequestEditorFn{WithIdempotencyKey("k")}, sent: 2, took: time.Second},
		"a proxy":                       {refusals: refusals{refuse(503, "text/html", "1")}, sent: 1, status: 503},
		"refusal without Retry-After":   {refusals: refusals{refuse(503, ours, "")}, sent: 1, status: 503},
		"a proxy, with a key":           {refusals: refusals{refuse(503, "text/html", ""), refuse(503, "text/html", "2")}, editors: []RequestEditorFn{WithIdempotencyKey("k")}, sent: 3, took: 2375 * time.Millisecond},
		"a key whose call runs":         {refusals: refusals{refuse(409, ours, "1")}, editors: []RequestEditorFn{WithIdempotencyKey("k")}, sent: 2, took: time.Second},
		"a conflict without a key":      {refusals: refusals{refuse(409, ours, "1")}, sent: 1, status: 409},
		"an error of the tool":          {refusals: refusals{refuse(502, ours, "")}, editors: []RequestEditorFn{WithIdempotencyKey("k")}, sent: 1, status: 502},
		"a broken connection":           {refusals: refusals{breaks(broken)}, sent: 1, err: broken},
		"a broken connection and a key": {refusals: refusals{breaks(broken)}, editors: []RequestEditorFn{WithIdempotencyKey("k")}, sent: 2, took: 375 * time.Millisecond},
		"no connection":                 {refusals: refusals{breaks(unreachable)}, sent: 2, took: 375 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				doer := &refusing{refusals: c.refusals}
				// The order of options does not matter.
				client, err := New("http://callyard.test", "", append(c.options, WithHTTPClient(doer))...)
				if err != nil {
					t.Fatal(err)
				}
				from := time.Now()
				result, err := client.Call(t.Context(), "demo", "echo", map[string]string{"message": "a"}, c.editors...)
				took := time.Since(from)
				var refusal *ProblemError
				switch {
				case c.status != 0:
					if !errors.As(err, &refusal) || refusal.Problem.Status != c.status {
						t.Errorf("%v", err)
					}
				case c.err != nil:
					if !errors.Is(err, c.err) {
						t.Errorf("%v", err)
					}
				case err != nil || Text(result) != "done":
					t.Errorf("%+v, %v", result, err)
				}
				if len(doer.bodies) != c.sent || len(slices.Compact(doer.bodies)) != 1 || !strings.Contains(doer.bodies[0], `"message":"a"`) {
					t.Errorf("sent %d times, not %d: %q", len(doer.bodies), c.sent, doer.bodies)
				}
				if took < c.took || took > c.took*4/3+time.Millisecond {
					t.Errorf("took %s, not %s", took, c.took)
				}
			})
		})
	}
}

func TestEndedContextStopsWaitForRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := New("http://callyard.test", "", WithHTTPClient(&refusing{refusals: []func() (*http.Response, error){refuse(429, ours, "50")}}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		from := time.Now()
		if _, err := client.Call(ctx, "demo", "echo", nil); !errors.Is(err, context.Canceled) || time.Since(from) != time.Second {
			t.Errorf("%v after %s", err, time.Since(from))
		}
	})
}

func TestRefusalIsReturnedAtOnceIfTheDeadlineIsBeforeRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := New("http://callyard.test", "", WithHTTPClient(&refusing{refusals: []func() (*http.Response, error){refuse(429, ours, "50")}}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		from := time.Now()
		var refusal *ProblemError
		if _, err := client.Call(ctx, "demo", "echo", nil); !errors.As(err, &refusal) || refusal.RetryAfter != 50*time.Second || time.Since(from) != 0 {
			t.Errorf("%v after %s", err, time.Since(from))
		}
	})
}

func TestNetworkErrorIsReturnedAtOnceIfTheDeadlineIsBeforeTheRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unreachable := &net.OpError{Op: "dial", Err: errors.New("refused")}
		client, err := New("http://callyard.test", "", WithHTTPClient(&refusing{refusals: []func() (*http.Response, error){breaks(unreachable)}}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		from := time.Now()
		if _, err := client.Call(ctx, "demo", "echo", nil); !errors.Is(err, unreachable) || time.Since(from) != 0 {
			t.Errorf("%v after %s", err, time.Since(from))
		}
	})
}

func TestWaitAsksForLessTimeThanTheHTTPClientAllows(t *testing.T) {
	for name, c := range map[string]struct {
		timeout time.Duration
		options []ClientOption
		wait    string
	}{
		"no timeout":                  {wait: "30"},
		"a timeout of ten seconds":    {timeout: 10 * time.Second, wait: "5"},
		"a timeout under two seconds": {timeout: 1500 * time.Millisecond, wait: "1"},
		"a long timeout":              {timeout: time.Hour, wait: "30"},
		"without retries":             {timeout: 10 * time.Second, options: []ClientOption{WithRetries(0)}, wait: "5"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked string
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.URL.Query().Get("wait")
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"id":"call_1","server":"demo","tool":"echo","state":"succeeded","created":"2026-01-02T03:04:05Z","result":{"content":[]}}`)
			}))
			defer front.Close()
			client, err := New(front.URL, "", append(c.options, WithHTTPClient(&http.Client{Timeout: c.timeout}))...)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.Wait(t.Context(), "call_1"); err != nil || asked != c.wait {
				t.Errorf("asked for %q seconds: %v", asked, err)
			}
		})
	}
}

func TestStreamedBodyIsNotRetried(t *testing.T) {
	doer := &refusing{refusals: []func() (*http.Response, error){refuse(429, ours, "1")}}
	client, err := New("http://callyard.test", "", WithHTTPClient(doer))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range Lines[BatchResult](client.CreateBatchWithBody(t.Context(), nil, LinesType, LinesOf(slices.Values([]BatchCall{{Server: "demo"}})))) {
		var refusal *ProblemError
		if !errors.As(err, &refusal) || refusal.RetryAfter != time.Second {
			t.Errorf("%v", err)
		}
	}
	if len(doer.bodies) != 1 {
		t.Errorf("%q", doer.bodies)
	}
}
