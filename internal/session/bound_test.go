package session

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/launch/attach/attachtest"
	"github.com/callyard/callyard/pkg/schema"
)

// keeps returns a program that answers with the name of the session and its own.
func keeps(instance string, inFlight int) (*attachtest.Program, chan string) {
	ended := make(chan string, 10)
	return &attachtest.Program{
		Instance: instance, InFlight: inFlight, Ended: func(name string) { ended <- name },
		Call: func(ctx context.Context, _ string, _ json.RawMessage) string {
			return fmt.Sprintf(`{"content":[],"structuredContent":{"session":%q,"from":%q}}`, attachtest.SessionOf(ctx), instance)
		},
	}, ended
}

// bind binds a holder and returns a function for its calls.
func (p *attachPool) bind(name string) (*Binding, func(req *Request) Outcome) {
	p.t.Helper()
	b, err := Bind(p.Pool, name)
	if err != nil {
		p.t.Fatal(err)
	}
	return b, func(req *Request) Outcome {
		over := make(chan Outcome, 1)
		req.Name = "echo"
		b.Do(req, func(_ *Request, o Outcome) { over <- o })
		return <-over
	}
}

func TestBoundCallsReachOneProgramWithTheirSessionName(t *testing.T) {
	p := openAttachPool(t, Config{InFlight: 8}, 0)
	if _, err := Bind(p.Pool, "early"); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("without a program: %v", err)
	}
	one, ended := keeps("one", 8)
	a := p.attach(one)
	p.sessions(1)
	first, callFirst := p.bind("first")
	two, _ := keeps("two", 8)
	p.attach(two)
	p.sessions(2)
	_, callSecond := p.bind("second")
	for range 10 {
		if o := must(t, callFirst(&Request{})); !strings.Contains(string(o.Body), `"session":"first","from":"one"`) {
			t.Fatalf("the first got %s", o.Body)
		}
		posed := []byte(`{"_meta":{"dev.callyard/session":"first"}}`)
		if o := must(t, callSecond(&Request{Extra: posed})); !strings.Contains(string(o.Body), `"session":"second","from":"two"`) {
			t.Fatalf("the second got %s", o.Body)
		}
		if o := must(t, p.callWith(posed)); !strings.Contains(string(o.Body), `"session":""`) {
			t.Fatalf("a caller without a binding poses as one with it: %s", o.Body)
		}
	}
	first.Close()
	first.Close()
	if name := <-ended; name != "first" {
		t.Errorf("the program is told that %q has ended", name)
	}
	_, callThird := p.bind("third") // at the program that has no holder now
	if o := must(t, callThird(&Request{})); !strings.Contains(string(o.Body), `"from":"one"`) {
		t.Errorf("the third got %s", o.Body)
	}
	a.Kill()
	p.sessions(1)
	if o := callThird(&Request{}); o.Err == nil || o.Err.Kind != schema.KindServerFailed || o.Started || o.Err.Retryable {
		t.Errorf("after the program left: %+v", o)
	}
	must(t, callSecond(&Request{}))
}

// callWith makes a call without a binding.
func (p *attachPool) callWith(extra []byte) Outcome {
	p.t.Helper()
	_, end := p.begin(&Request{Name: "echo", Extra: extra})
	return end()
}

func TestBoundCallsWaitForTheirProgramAndFailWithIt(t *testing.T) {
	p := openAttachPool(t, Config{InFlight: 1}, 0)
	busy := newHeld("busy", 1)
	a := p.attach(&busy.Program)
	p.sessions(1)
	b, _ := p.bind("a")
	outcomes := make(chan Outcome, 3)
	send := func() {
		b.Do(&Request{Name: "echo", Params: []byte(`{}`)}, func(_ *Request, o Outcome) { outcomes <- o })
	}
	send()
	<-busy.came
	send()
	p.attach(&attachtest.Program{Instance: "free"}) // it has a place, but not the state
	p.sessions(2)
	must(t, p.call("echo", `{}`))
	busy.goOn <- struct{}{}
	if o := must(t, <-outcomes); !strings.Contains(string(o.Body), "busy") {
		t.Errorf("the first got %s", o.Body)
	}
	<-busy.came // the second one, when it is its turn
	send()      // waits, and is never sent
	a.Kill()
	kinds := map[schema.Kind]bool{}
	for range 2 {
		o := <-outcomes
		if o.Err == nil {
			t.Fatalf("it ended with %s", o.Body)
		}
		kinds[o.Err.Kind] = true
	}
	if !kinds[schema.KindOutcomeUnknown] || !kinds[schema.KindServerFailed] {
		t.Errorf("the calls ended with %v", kinds)
	}
}

// TestBoundAndUnboundCallsRunInOrderOfArrival makes both kinds of calls wait for the only place of a
// program. The oldest call gets the place, so that no call starves behind later ones.
func TestBoundAndUnboundCallsRunInOrderOfArrival(t *testing.T) {
	p := openAttachPool(t, Config{InFlight: 1}, 0)
	busy := newHeld("busy", 1)
	p.attach(&busy.Program)
	p.sessions(1)
	b, _ := p.bind("a")
	var ends []func() Outcome
	for i, bound := range []bool{true, false, true, true, false, false, true} {
		r := &Request{Name: "echo", Params: fmt.Appendf(nil, `{"n":%d}`, i)}
		over := make(chan Outcome, 1)
		done := func(_ *Request, o Outcome) { over <- o }
		if bound {
			b.Do(r, done)
		} else {
			p.Do(r, done)
		}
		ends = append(ends, func() Outcome { return <-over })
	}
	for i := range ends {
		if got, want := <-busy.came, fmt.Sprintf(`{"n":%d}`, i); got != want {
			t.Errorf("the call %d in turn is %s", i, got)
		}
		busy.goOn <- struct{}{}
	}
	for _, end := range ends {
		must(t, end())
	}
}
