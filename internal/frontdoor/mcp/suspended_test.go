package mcp

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// openAsking returns a fabric whose server demo sends requests to its callers.
func openAsking(t *testing.T) *fabric {
	t.Helper()
	f := openFabric(t, nil)
	f.Worker.Change(func(w *schema.Worker) { w.Servers[0].Asks = true })
	f.WaitFor("the server that asks", func() bool {
		s, err := f.endpoint.o.Catalog.Server("demo")
		return err == nil && s.Asks
	})
	return f
}

// hang starts a call of the modern era that hangs. It returns its future answer and the address of
// its replies.
func (f *fabric) hang(capabilities, more string) (later <-chan answer, to bus.ReplyTo, seq uint64) {
	f.t.Helper()
	later = f.later(capabilities, more)
	<-f.Worker.Asked
	to, seq = f.Worker.Hanging()
	return later, to, seq
}

// later sends a call without waiting for its answer.
func (f *fabric) later(capabilities, more string) <-chan answer {
	later := make(chan answer, 1)
	go func() {
		defer close(later)
		later <- f.callAs(capabilities, "/mcp/demo", "hang", `{"a":1.0}`, more)
	}()
	return later
}

func (f *fabric) asks(to bus.ReplyTo, seq uint64, number int64, question string) {
	f.t.Helper()
	if !f.Worker.Listener.Said(to, seq, number, []byte(question)) {
		f.t.Fatal("the question was not sent")
	}
}

const whoIsIt = `{"method":"elicitation/create","params":{"message":"Who?",  "big":9007199254740993}}`

// back returns the params with which a client answers a question.
func back(question []byte, responses string) string {
	return fmt.Sprintf(`,"requestState":%q,"inputResponses":%s`, getString(question, "requestState"), responses)
}

func TestServerRequestReachesModernClientAsInputRequired(t *testing.T) {
	f := openAsking(t)
	before := f.Worker.Count()
	first, to, seq := f.hang(canForms, "")
	if c := f.Worker.Last(); !c.Hears || c.Session == "" || !strings.Contains(string(c.Extra), `"elicitation":{}`) {
		t.Errorf("hears %v, session %q, %s", c.Hears, c.Session, c.Extra)
	}
	f.asks(to, seq, 7, whoIsIt)
	question := []byte((<-first).result(t))
	if getString(question, "resultType") != "input_required" || string(get(question, "inputRequests")) != `{"1":`+whoIsIt+`}` {
		t.Fatalf("%s", question)
	}
	// A client that replies without an answer is asked again.
	if again := f.callAs(canForms, "/mcp/demo", "hang", `{"a":1.0}`, back(question, `{}`)).result(t); again != string(question) {
		t.Errorf("%s, and then %s", question, again)
	}
	second := f.later(canForms, back(question, `{"1":{"action":"accept","n":1.0}}`))
	if got, want := <-f.Worker.Told, told(seq, 7, `{"result":{"action":"accept","n":1.0}}`); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	f.asks(to, seq, 8, whoIsIt) // again, with another ID
	if question = []byte((<-second).result(t)); string(get(question, "inputRequests")) != `{"2":`+whoIsIt+`}` {
		t.Fatalf("%s", question)
	}
	third := f.later(canForms, back(question, `{"1":{"action":"cancel"},"2":{"action":"decline"}}`))
	if got, want := <-f.Worker.Told, told(seq, 8, `{"result":{"action":"decline"}}`); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	f.ends(to, seq)
	if got := (<-third).result(t); !strings.Contains(got, `"over":1.0`) {
		t.Error(got)
	}
	if n := f.Worker.Count() - before; n != 1 {
		t.Errorf("%d runs", n)
	}
	// It has ended and cannot be continued.
	if got := f.callAs(canForms, "/mcp/demo", "hang", `{"a":1.0}`, back(question, `{}`)).result(t); !strings.Contains(got, `"kind":"expired"`) {
		t.Error(got)
	}
}

func TestModernClientIsNotAskedWhatTheServerCanceled(t *testing.T) {
	f := openAsking(t)
	first, to, seq := f.hang(canForms, "")
	f.asks(to, seq, 7, `{"id":7,"method":"elicitation/create","params":{"message":"Who?"}}`)
	question := []byte((<-first).result(t))
	f.asks(to, seq, 0, `{"method":"notifications/cancelled","params":{"requestId":7}}`)
	f.asks(to, seq, 8, `{"id":8,"method":"elicitation/create","params":{"message":"Still there?"}}`)
	f.endpoint.suspended.mu.Lock()
	call := slices.Collect(maps.Values(f.endpoint.suspended.by))[0]
	f.endpoint.suspended.mu.Unlock()
	f.WaitFor("the other question", func() bool {
		call.mu.Lock()
		defer call.mu.Unlock()
		return len(call.open) == 1 && call.open[0].serverID == "8"
	})
	// The client answers what the server no longer asks.
	again := []byte((<-f.later(canForms, back(question, `{"1":{"action":"accept"}}`))).result(t))
	if got := string(get(again, "inputRequests")); got != `{"2":{"method":"elicitation/create","params":{"message":"Still there?"}}}` {
		t.Fatalf("%s", again)
	}
	last := f.later(canForms, back(again, `{"2":{"action":"decline"}}`))
	if got, want := <-f.Worker.Told, told(seq, 8, `{"result":{"action":"decline"}}`); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	f.ends(to, seq)
	if got := (<-last).result(t); !strings.Contains(got, `"over":1.0`) {
		t.Error(got)
	}
}

func TestModernClientGetsOnlyRequestsItDeclared(t *testing.T) {
	f := openAsking(t)
	later, to, seq := f.hang(canForms, "")
	f.asks(to, seq, 3, `{"method":"roots/list"}`)
	if got, want := <-f.Worker.Told, told(seq, 3, refusedUndeclared); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	f.ends(to, seq)
	if got := (<-later).result(t); !strings.Contains(got, `"over":1.0`) {
		t.Error(got)
	}
	f.callAs(`{}`, "/mcp/demo", "echo", `{}`, "").result(t)
	if c := f.Worker.Last(); c.Hears || c.Session != "" {
		t.Errorf("a client that cannot be asked has a session of its own: %q", c.Session)
	}
}

func TestSuspendedCallIsBoundToCallerCallAndFrontDoor(t *testing.T) {
	f := openAsking(t)
	first, to, seq := f.hang(canForms, "")
	f.asks(to, seq, 1, whoIsIt)
	question := []byte((<-first).result(t))
	elsewhere := requestState{Call: "call_x", Suspended: "made-up", Door: "another"}
	for what, a := range map[string]answer{
		"other arguments":    f.callAs(canForms, "/mcp/demo", "hang", `{"a":2}`, back(question, `{"1":{}}`)),
		"another tool":       f.callAs(canForms, "/mcp/demo", "echo", `{"a":1.0}`, back(question, `{"1":{}}`)),
		"another front door": f.callAs(canForms, "/mcp/demo", "hang", `{"a":1.0}`, fmt.Sprintf(`,"requestState":%q`, elsewhere)),
	} {
		got := a.result(t)
		if !strings.Contains(got, `"isError":true`) || !strings.Contains(got, `"kind":"expired"`) || strings.Contains(got, "of another front door") != (what == "another front door") {
			t.Errorf("%s: %s", what, got)
		}
	}
	last := f.later(canForms, back(question, `{"1":{}}`))
	<-f.Worker.Told
	f.ends(to, seq)
	if got := (<-last).result(t); !strings.Contains(got, `"over":1.0`) {
		t.Error(got)
	}
}

func TestCallsWithEqualCapabilitiesShareAConversation(t *testing.T) {
	f := openAsking(t)
	one, toOne, seqOne := f.hang(canForms, "")
	first := f.Worker.Last().Session
	two, toTwo, seqTwo := f.hang(canForms, "")
	if second := f.Worker.Last().Session; second != first || first == "" {
		t.Errorf("the conversations are %q and %q", first, second)
	}
	three, toThree, seqThree := f.hang(`{"elicitation":{},"sampling":{}}`, "")
	if third := f.Worker.Last().Session; third == first {
		t.Errorf("a client that can be asked more has the same conversation %q", third)
	}
	f.ends(toOne, seqOne)
	f.ends(toTwo, seqTwo)
	f.ends(toThree, seqThree)
	(<-one).result(t)
	(<-two).result(t)
	(<-three).result(t)
}

func TestSuspendedCallsAreLimitedPerPrincipal(t *testing.T) {
	f := openAsking(t)
	first, firstTo, firstSeq := f.hang(canForms, "")
	f.asks(firstTo, firstSeq, 1, whoIsIt)
	if got := (<-first).result(t); !strings.Contains(got, "input_required") {
		t.Fatal(got)
	}
	away := func(n int) {
		f.endpoint.suspended.mu.Lock()
		defer f.endpoint.suspended.mu.Unlock()
		for principal := range f.endpoint.suspended.away {
			f.endpoint.suspended.away[principal] = n
		}
	}
	away(maxAway)
	// The limit is reached, so the next client is not asked, and its call continues.
	last, to, seq := f.hang(canForms, "")
	f.asks(to, seq, 99, whoIsIt)
	if got, want := <-f.Worker.Told, told(seq, 99, refusedTooMany); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	f.ends(to, seq)
	if got := (<-last).result(t); !strings.Contains(got, `"over":1.0`) {
		t.Error(got)
	}
	away(1)
	f.ends(firstTo, firstSeq)
	f.WaitFor("the ends of the calls", func() bool {
		f.endpoint.suspended.mu.Lock()
		defer f.endpoint.suspended.mu.Unlock()
		return len(f.endpoint.suspended.away) == 0
	})
}

func TestOpenServerRequestIsRefusedWhenFrontDoorStops(t *testing.T) {
	f := openAsking(t)
	first, to, seq := f.hang(canForms, "")
	f.asks(to, seq, 1, whoIsIt)
	(<-first).result(t)
	f.endpoint.drain()
	if got, want := <-f.Worker.Told, told(seq, 1, refusedUnanswered); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	f.ends(to, seq)
}
