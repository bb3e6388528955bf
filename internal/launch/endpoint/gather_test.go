package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch/adapt"
	"github.com/callyard/callyard/pkg/schema"
)

// call is a call as the endpoint gets it.
type call struct {
	ID       string
	Function struct{ Name, Arguments string }
}

// asked is a request that waits for what the test says.
type asked struct {
	calls  []call
	answer chan func(http.ResponseWriter)
	ctx    context.Context
}

// fake is an endpoint without a network, so that time in a test can be that of synctest.
type fake struct {
	requests chan *asked
	slow     bool // no connection is made before the answer
}

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	var in struct {
		Calls []call `json:"tool_calls"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, err
	}
	if t := httptrace.ContextClientTrace(r.Context()); t != nil && !f.slow {
		t.GotConn(httptrace.GotConnInfo{})
	}
	a := &asked{calls: in.Calls, answer: make(chan func(http.ResponseWriter)), ctx: r.Context()}
	f.requests <- a
	select {
	case answer := <-a.answer:
		rec := httptest.NewRecorder()
		rec.Header().Set("Content-Type", "application/json")
		answer(rec)
		return rec.Result(), nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// ended is how a call ended.
type ended struct {
	n      int
	result string
	err    error
	took   time.Duration
	left   bool // it may have left, as the session sees it
}

// many is a server whose requests have up to most calls.
type many struct {
	*Server
	*fake
	ends chan ended
}

func openMany(most int) *many {
	m := &many{fake: &fake{requests: make(chan *asked, 100)}, ends: make(chan ended, 100)}
	m.Server = New(Config{ID: "tools", Endpoint: config.ToolEndpoint{URL: "http://endpoint.test", Tools: json.RawMessage(list), CallsPerRequest: most}, MaxResult: 1 << 20})
	m.client.Transport = m.fake
	return m
}

// begin begins call n.
func (m *many) begin(ctx context.Context, n int) {
	go func() {
		began := time.Now()
		var left atomic.Bool
		ctx := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { left.Store(true) }})
		got, err := m.Call(ctx, "add", json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)))
		m.ends <- ended{n, string(got), err, time.Since(began), left.Load()}
	}()
	synctest.Wait()
}

// each answers a request with a message for each call, made by say; "" is none.
func (a *asked) each(say func(c call) string) {
	a.answer <- func(w http.ResponseWriter) {
		var messages []string
		for _, c := range a.calls {
			if text := say(c); text != "" {
				messages = append(messages, text)
			}
		}
		fmt.Fprintf(w, `{"messages":[%s]}`, strings.Join(messages, ","))
	}
}

func repeat(c call) string {
	return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%q}`, c.ID, c.Function.Arguments)
}

func (m *many) collect(n int) map[int]ended {
	all := make(map[int]ended, n)
	for range n {
		e := <-m.ends
		all[e.n] = e
	}
	return all
}

func TestCallsDuringARequestAreBatchedIntoTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := openMany(4)
		m.begin(t.Context(), 0)
		first := <-m.requests // without any time having passed
		if len(first.calls) != 1 {
			t.Fatalf("%d calls in the first request", len(first.calls))
		}
		for n := 1; n <= 3; n++ {
			m.begin(t.Context(), n)
		}
		if len(m.requests) != 0 {
			t.Fatal("calls did not wait for each other")
		}
		time.Sleep(gatherFor)
		second := <-m.requests
		if len(second.calls) != 3 {
			t.Fatalf("%d calls in the second request", len(second.calls))
		}
		for n := 4; n <= 9; n++ { // four fill a request, which does not wait
			m.begin(t.Context(), n)
		}
		third := <-m.requests
		if len(third.calls) != 4 || len(m.requests) != 0 {
			t.Fatalf("%d calls in the third request, %d more requests", len(third.calls), len(m.requests))
		}
		first.each(repeat) // a request that ends takes the others along
		synctest.Wait()
		fourth := <-m.requests
		for _, r := range []*asked{second, third, fourth} {
			r.each(repeat)
		}
		for n, e := range m.collect(10) {
			if e.err != nil || e.result != fmt.Sprintf(`{"content":[{"type":"text","text":"{\"n\":%d}"}],"structuredContent":{"n":%d}}`, n, n) || e.took > gatherFor {
				t.Errorf("call %d: %+v", n, e)
			}
		}
		m.begin(t.Context(), 10)
		if last := <-m.requests; len(last.calls) == 1 {
			last.each(repeat)
		}
		if e := <-m.ends; e.took != 0 {
			t.Errorf("an idle endpoint was waited for: %v", e.took)
		}
	})
}

// together returns a request with n calls, which are under way.
func (m *many) together(t *testing.T, ctx context.Context, n int) *asked { //nolint:revive // the test comes first
	t.Helper()
	m.begin(t.Context(), -1)
	first := <-m.requests
	for i := range n {
		m.begin(ctx, i)
	}
	first.each(repeat)
	<-m.ends
	r := <-m.requests
	if len(r.calls) != n {
		t.Fatalf("%d calls in one request, want %d", len(r.calls), n)
	}
	return r
}

func TestInvalidAnswersInABatchDoNotAffectOtherCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := openMany(10)
		r := m.together(t, t.Context(), 6)
		at := make(map[string]int)
		for i, c := range r.calls {
			at[c.ID] = i
		}
		r.each(func(c call) string {
			switch at[c.ID] {
			case 0:
				return "" // missing
			case 1:
				return repeat(c) + "," + repeat(c) // duplicate
			case 2:
				return `{"role":"tool","tool_call_id":"foreign","content":"2"},{"content":"nobody's"},7,` + repeat(c)
			case 3:
				return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"no","is_error":true}`, c.ID)
			case 4:
				return fmt.Sprintf(`{"role":"assistant","tool_call_id":%q,"content":"no tool message"}`, c.ID)
			}
			return repeat(c)
		})
		for n, e := range m.collect(6) {
			unknown := schema.KindOf(e.err) == schema.KindOutcomeUnknown && e.left
			switch n {
			case 0, 1, 4:
				if !unknown {
					t.Errorf("call %d: %+v", n, e)
				}
			case 3:
				if e.err != nil || e.result != `{"content":[{"type":"text","text":"no"}],"isError":true}` {
					t.Errorf("call %d: %+v", n, e)
				}
			default:
				if e.err != nil || !strings.Contains(e.result, fmt.Sprintf(`"structuredContent":{"n":%d}`, n)) {
					t.Errorf("call %d: %+v", n, e)
				}
			}
		}
	})
}

func TestFailureOfABatchRequestFailsEachCall(t *testing.T) {
	for name, x := range map[string]struct {
		answer func(http.ResponseWriter)
		ok     func(ended) bool
	}{
		"a status": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }, func(e ended) bool { return e.err == nil && strings.Contains(e.result, `"status":503`) }},
		"no JSON":  {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") }, func(e ended) bool { return schema.KindOf(e.err) == schema.KindOutcomeUnknown && e.left }},
		"one for nobody": {func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"content":"whose?"}`) },
			func(e ended) bool { return schema.KindOf(e.err) == schema.KindOutcomeUnknown }},
		"too much": {func(w http.ResponseWriter) { _, _ = io.WriteString(w, strings.Repeat(" ", 5<<20)) },
			func(e ended) bool { var large *adapt.TooLarge; return errors.As(e.err, &large) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := openMany(10)
			m.together(t, t.Context(), 3).answer <- x.answer
			for n, e := range m.collect(3) {
				if !x.ok(e) {
					t.Errorf("%s: call %d: %+v", name, n, e)
				}
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // without other calls, a message needs no id
		m := openMany(10)
		m.begin(t.Context(), 0)
		(<-m.requests).answer <- func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"content":"mine"}`) }
		if e := <-m.ends; e.err != nil || !strings.Contains(e.result, "mine") {
			t.Errorf("%+v", e)
		}
	})
}

func TestRequestEndsOnlyWhenAllItsCallsAreCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := openMany(10)
		m.begin(t.Context(), -1)
		first := <-m.requests
		queued, cancelQueued := context.WithCancel(t.Context())
		m.begin(queued, 9)
		cancelQueued()
		if e := <-m.ends; !errors.Is(e.err, context.Canceled) || e.left {
			t.Errorf("a call that waited: %+v", e)
		}
		m.slow = true // a request that continues may still carry the call there
		one, cancelOne := context.WithCancel(t.Context())
		rest, cancelRest := context.WithCancel(t.Context())
		m.begin(one, 0)
		m.begin(rest, 1)
		m.begin(rest, 2)
		first.each(repeat)
		<-m.ends
		r := <-m.requests
		if len(r.calls) != 3 {
			t.Fatalf("%d calls", len(r.calls))
		}
		cancelOne()
		if e := <-m.ends; e.n != 0 || !errors.Is(e.err, context.Canceled) || !e.left || r.ctx.Err() != nil {
			t.Errorf("%+v, the request has ended with %v", e, r.ctx.Err())
		}
		cancelRest()
		m.collect(2)
		if r.ctx.Err() == nil {
			t.Error("nobody waits, and the request continues")
		}
	})
}

func TestTotalArgumentSizeOfARequestIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := openMany(10)
		m.begin(t.Context(), -1)
		first := <-m.requests
		for range 3 {
			go func() {
				_, err := m.Call(t.Context(), "add", json.RawMessage(`{"x":"`+strings.Repeat("x", mostArguments/2)+`"}`))
				m.ends <- ended{err: err}
			}()
		}
		synctest.Wait()
		first.each(repeat)
		<-m.ends
		for range 3 {
			r := <-m.requests
			if len(r.calls) != 1 {
				t.Errorf("%d calls", len(r.calls))
			}
			r.each(repeat)
		}
		m.collect(3)
	})
}

func TestEachCallRunsOnceOverHTTP(t *testing.T) {
	var requests, most atomic.Int64
	var seen sync.Map
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Calls []call `json:"tool_calls"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		requests.Add(1)
		most.Store(max(most.Load(), int64(len(in.Calls))))
		var messages []string
		for i := len(in.Calls) - 1; i >= 0; i-- { // in another order
			c := in.Calls[i]
			if _, twice := seen.LoadOrStore(c.Function.Arguments, true); twice {
				t.Errorf("%s came twice", c.Function.Arguments)
			}
			messages = append(messages, repeat(c))
		}
		fmt.Fprintf(w, `[%s]`, strings.Join(messages, ","))
	}))
	t.Cleanup(srv.Close)
	s := New(Config{ID: "tools", Endpoint: config.ToolEndpoint{URL: srv.URL, Tools: json.RawMessage(list), CallsPerRequest: 16}})
	t.Cleanup(s.CloseIdle)
	var calls sync.WaitGroup
	for n := range 500 {
		calls.Go(func() {
			got, err := s.Call(t.Context(), "add", json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)))
			if err != nil || !strings.Contains(string(got), fmt.Sprintf(`"structuredContent":{"n":%d}`, n)) {
				t.Errorf("call %d: %s, %v", n, got, err)
			}
		})
	}
	calls.Wait()
	if requests.Load() >= 500 || most.Load() > 16 {
		t.Errorf("%d requests, of at most %d calls", requests.Load(), most.Load())
	}
}
