package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callyard/callyard/internal/frontdoor/frontdoortest"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// A call that could not be held has not failed: the approval may be stored nevertheless, and then its
// approved call would run although its result says that it failed.
func TestCallOfABatchWaitsWhileApprovalsCannotBeStored(t *testing.T) {
	t.Parallel()
	f := openFabricWith(t, frontdoortest.Options{Policy: policyOf(t, "rules: [{name: ask, level: 2}]")}, nil)
	restore := f.refuseWrites(bus.StreamLedger)
	attempts := f.writes(bus.SubjectApproval + "*" + bus.SuffixOpen)
	b := f.batch(`{"calls":[{"server":"demo","tool":"echo","arguments":{}}]}`)
	now := func() string {
		c := f.showBatch(b.ID).Counts
		return fmt.Sprintf("%d held, %d failed", c.Held, c.Failed)
	}
	polltest.Until(t, "a second attempt", func() bool { return attempts() >= 2 || now() != "0 held, 0 failed" })
	if got := now(); got != "0 held, 0 failed" {
		t.Fatalf("of the call are %s", got)
	}
	restore()
	polltest.Until(t, "the held call", func() bool { return now() == "1 held, 0 failed" })
}

// If the key were stored after its call was held, a front door that dies in between would leave a held
// call that the repeated request does not find.
func TestKeyIsStoredBeforeItsCallIsHeld(t *testing.T) {
	t.Parallel()
	f := openFabricWith(t, frontdoortest.Options{Policy: policyOf(t, "rules: [{name: ask, level: 2, approval: {groups: [ops]}}]")}, nil)
	opened := f.writes(bus.SubjectApproval + "*" + bus.SuffixOpen)
	ask := func(arguments string) answer {
		return f.do("POST", "/servers/demo/tools/echo", arguments, "Content-Type", "application/json", "Idempotency-Key", "k")
	}
	restore := f.refuseWrites(bus.StreamKeys)
	if a := ask(`{}`); a.status != http.StatusServiceUnavailable {
		t.Fatalf("without its key, the call is answered with %d %s", a.status, a.body)
	}
	restore()
	restore = f.refuseWrites(bus.StreamLedger)
	if a := ask(`{}`); a.status != http.StatusServiceUnavailable || opened() != 1 {
		t.Fatalf("%d %s; %d approvals were written", a.status, a.body, opened())
	}
	restore()
	if a := ask(`{"text":"another"}`); a.status != http.StatusUnprocessableEntity {
		t.Errorf("another request with the key: %d %s", a.status, a.body)
	}
	var ids []string
	for range 3 {
		var held struct {
			ID string `json:"call_id"`
		}
		if a := ask(`{}`); a.status != http.StatusAccepted || json.Unmarshal([]byte(a.body), &held) != nil {
			t.Fatalf("%d %s", a.status, a.body)
		}
		ids = append(ids, held.ID)
	}
	if ids[0] == "" || ids[1] != ids[0] || ids[2] != ids[0] || opened() != 2 {
		t.Errorf("the calls are %q; %d approvals were written", ids, opened())
	}
}

func TestRepeatedRequestOfACallThatIsHeld(t *testing.T) {
	t.Parallel()
	f := openFabricWith(t, frontdoortest.Options{Policy: policyOf(t, "rules:\n  - {name: own, match: {tool: hang}, level: 2, approval: {by: caller}}\n  - {name: ask, level: 2, approval: {groups: [ops]}}\n")}, nil)
	for tool, want := range map[string]struct {
		status int
		text   string
	}{
		"echo": {http.StatusAccepted, `"outcome":"held"`},
		"hang": {http.StatusConflict, "confirmation_id of the first answer"},
	} {
		for _, prefer := range []string{"", "wait=1", "respond-async"} {
			ask := func() answer {
				return f.do("POST", "/servers/demo/tools/"+tool, `{}`, "Content-Type", "application/json", "Idempotency-Key", tool+prefer, "Prefer", prefer)
			}
			first, again := ask(), ask()
			if first.status != http.StatusAccepted || first.header.Get("Idempotency-Replayed") != "" {
				t.Errorf("%s %s: %d %s", tool, prefer, first.status, first.body)
			}
			if again.status != want.status || !strings.Contains(string(again.body), want.text) || again.header.Get("Callyard-Call-Id") != first.header.Get("Callyard-Call-Id") {
				t.Errorf("%s %s again: %d %s", tool, prefer, again.status, again.body)
			}
			if held := want.status == http.StatusAccepted; held != (again.header.Get("Idempotency-Replayed") == "true") {
				t.Errorf("%s %s again: %v", tool, prefer, again.header)
			}
		}
		calls := func() string {
			return string(f.do("POST", "/tool-calls", `[{"type":"tool_use","id":"h","name":"demo__`+tool+`","input":{}}]`, "Content-Type", "application/json", "Idempotency-Key", tool+"s").body)
		}
		if first, again := calls(), calls(); !strings.Contains(first, `"outcome":"held"`) || !strings.Contains(again, want.text) {
			t.Errorf("%s as a tool call: %s, then %s", tool, first, again)
		}
	}
}

// refuseWrites makes a stream refuse writes, as while a disk is full, until restore is called.
func (f *fabric) refuseWrites(name string) (restore func()) {
	f.t.Helper()
	js := bustest.JetStream(f.t, f.NATS.URL)
	stream, err := js.Stream(f.t.Context(), name)
	if err != nil {
		f.t.Fatal(err)
	}
	update := func(c jetstream.StreamConfig) {
		f.t.Helper()
		if _, err := js.UpdateStream(f.t.Context(), c); err != nil {
			f.t.Fatal(err)
		}
	}
	config := stream.CachedInfo().Config
	full := config
	full.MaxBytes = 1
	update(full)
	return func() { update(config) }
}

// writes returns a function that counts the messages that have been sent to a subject since now.
func (f *fabric) writes(subject string) (count func() int) {
	f.t.Helper()
	nc, err := nats.Connect(f.NATS.URL)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(nc.Close)
	sent := make(chan *nats.Msg, 100)
	if _, err := nc.ChanSubscribe(subject, sent); err != nil {
		f.t.Fatal(err)
	}
	flush := func() {
		if err := nc.Flush(); err != nil { // all that was sent before has arrived then
			f.t.Fatal(err)
		}
	}
	flush()
	return func() int {
		flush()
		return len(sent)
	}
}
