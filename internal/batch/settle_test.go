package batch

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/callyard/callyard/internal/calls/execution"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// unknownCall stores a batch with one call whose outcome is unknown, and ends the batch.
func unknownCall(t *testing.T, o *Options) schema.CallID {
	t.Helper()
	owned := sealedBatch(t, o, 1)
	id := testIDs.CallID(owned.ID(), 0, ann.Name)
	if err := owned.Results(t.Context(), journal.ResultRecord{CallID: id, Outcome: journal.Unknown, Attempt: 1, Ended: time.Now(), Error: encodeError(notKnown())}); err != nil {
		t.Fatal(err)
	}
	newJob(o, testIDs, owned).end(nil, nil)
	return id
}

// If the front door dies between the two writes, the order in an ended journal would run nothing, and
// the call could not be settled again.
func TestJournalRunsBeforeTheOrderToRunItsCallAgainIsStored(t *testing.T) {
	srv := bustest.Start(t)
	o, js, stop, work := workingOn(t, srv.Connect(t, "frontdoor"), nil)
	id := unknownCall(t, o)
	stop() // nothing runs here
	nc, err := nats.Connect(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	messages := make(chan *nats.Msg, 100)
	if _, err := nc.ChanSubscribe(bus.SubjectJournal+">", messages); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	c := &Calls{o: o, ids: testIDs, jobs: js, finder: &finder{o: o, ids: testIDs, jobs: js}}
	if _, err := c.Settle(t.Context(), id, ann, schema.Tenants{}, Verdict{Again: true, Reason: "it is safe"}); err != nil {
		t.Fatal(err)
	}
	work.Wait()
	if err := nc.Flush(); err != nil { // the messages arrived before
		t.Fatal(err)
	}
	var written []string
	for range len(messages) {
		switch m := <-messages; {
		case strings.HasSuffix(m.Subject, bus.SuffixManifest) && bytes.Contains(m.Data, []byte(`"state":"running"`)):
			written = append(written, "running")
		case strings.HasSuffix(m.Subject, bus.SuffixResults):
			written = append(written, "result")
		}
	}
	if len(written) < 3 || written[0] != "result" || written[1] != "running" || written[2] != "result" {
		t.Errorf("written were %v: the claim, the state and the order are expected", written)
	}
}

// The person saw an earlier unknown outcome, because a replica lags. The intent of the next attempt counts only
// if its number is greater than that of the latest one: otherwise the next owner would run the call again.
func TestOrderedCallContinuesAfterItsLatestAttempt(t *testing.T) {
	conn := bustest.Start(t).Connect(t, "frontdoor")
	o, js, stop, _ := workingOn(t, conn, nil)
	defer stop()
	sends(t, conn, o)
	owned := sealedBatch(t, o, 1)
	unknown := func(attempt int) journal.ResultRecord {
		return journal.ResultRecord{Outcome: journal.Unknown, Attempt: attempt, Ended: time.Now(), Error: encodeError(notKnown())}
	}
	again := unknown(1)
	again.Settle, again.By, again.Reason = journal.SettleAgain, "ann", "r"
	if err := owned.Results(t.Context(), unknown(1), again, unknown(2)); err != nil {
		t.Fatal(err)
	}
	calls, err := owned.Read(t.Context(), 0, 1)
	if err != nil || len(calls) != 1 {
		t.Fatal(calls, err)
	}
	j := newJob(o, testIDs, owned)
	js.owned[owned.ID()] = j
	seen := unknown(1)
	c := &Calls{o: o, ids: testIDs, jobs: js, finder: &finder{o: o, ids: testIDs, jobs: js}}
	s := &Status{CallID: testIDs.CallID(owned.ID(), 0, ann.Name), Principal: ann, Call: &calls[0], Result: &seen}
	if _, err := c.settleHere(t.Context(), j, s, Verdict{Again: true, Reason: "it is safe"}); err != nil {
		t.Fatal(err)
	}
	if it := j.l.calls.find(0); it == nil || it.attempt != 2 {
		t.Errorf("%+v", it)
	}
	j.l.life.halt(errStopped)
	j.l.window.wait()
}

// A call can end without another attempt, because its server is gone or the policy denies it now.
func TestOrderedCallCanEndWithoutAnotherAttempt(t *testing.T) {
	o, _, stop, _ := working(t)
	defer stop()
	for _, e := range []*schema.Error{
		schema.Errorf(schema.KindInvalidArguments, "The arguments are invalid now."),
		schema.Errorf(schema.KindOutcomeUnknown, "It is unknown again."),
	} {
		owned := sealedBatch(t, o, 1)
		unknown := journal.ResultRecord{Outcome: journal.Unknown, Attempt: 3, Ended: time.Now(), Error: encodeError(notKnown())}
		again := journal.ResultRecord{Outcome: journal.Unknown, Attempt: 3, Ended: time.Now(), Settle: journal.SettleAgain, By: "ann", Reason: "r"}
		if err := owned.Results(t.Context(), unknown, again); err != nil {
			t.Fatal(err)
		}
		j := newJob(o, testIDs, owned)
		calls, err := owned.Read(t.Context(), 0, 1)
		if err != nil || len(calls) != 1 {
			t.Fatal(calls, err)
		}
		it := j.l.item(&calls[0], owned.Progress().Standing(0).Attempt)
		j.results.conclude(it, nil, e)
		if !owned.Progress().Ended(0) {
			t.Errorf("%s: the call has no result: %+v", e.Kind, owned.Progress().Standing(0))
		}
	}
}

// The records of a call that is safe to repeat agree with the call itself, which is given up after its last
// attempt.
func TestCallThatIsGivenUpIsRecordedAsFailed(t *testing.T) {
	o, _, stop, _ := working(t)
	defer stop()
	log, err := records.Open(t.Context(), bustest.Start(t).Connect(t, "frontdoor"), records.Options{FrontDoor: o.ID, Log: o.Log})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	o.Chain = execution.New(execution.Options{Records: log})
	j := newJob(o, testIDs, sealedBatch(t, o, 1))
	it := j.l.item(&journal.CallRecord{Server: "s", Tool: "t", Principal: schema.Principal{Name: "ann"}}, 8)
	unknown := schema.Errorf(schema.KindOutcomeUnknown, "The worker died.")
	gave := &deadError{unknown} // by the last attempt
	j.pipeline.exec.recordFailure(it, &retryState{}, gave)
	j.results.conclude(it, nil, gave)
	if err := log.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	rec, err := log.Get(t.Context(), schema.AllTenants(), it.recordID())
	if err != nil || rec.State != schema.StateFailed || rec.Attempt != 8 || rec.Error != schema.KindOutcomeUnknown {
		t.Errorf("recorded is %+v, %v", rec, err)
	}
}

func TestCallRunsOnceIfItIsOrderedWhileItIsRead(t *testing.T) {
	table := newCallTable(noneEnded)
	ordered, read := callAt(1), callAt(1)
	if !table.enlist(ordered) || table.enlist(read) {
		t.Error("the call runs twice, or never")
	}
	table.delist(read) // it did not begin
	if table.find(1) != ordered {
		t.Error("the call that runs is not found")
	}
}

func TestNoCallIsOrderedAfterItsJournalHasEnded(t *testing.T) {
	o, js, stop, _ := working(t)
	defer stop()
	owned := sealedBatch(t, o, 1)
	j := newJob(o, testIDs, owned)
	j.finish()
	c := &Calls{o: o, ids: testIDs, jobs: js, finder: &finder{o: o, ids: testIDs, jobs: js}}
	s := &Status{CallID: "call_1", Call: &journal.CallRecord{}, Result: &journal.ResultRecord{Outcome: journal.Unknown, Attempt: 1}}
	if _, err := c.settleHere(t.Context(), j, s, Verdict{Again: true, Reason: "r"}); schema.KindOf(err) != schema.KindConflict {
		t.Errorf("%v", err)
	}
	if owned.Progress().Standing(0) != (journal.EffectiveOutcome{}) {
		t.Error("the order is stored")
	}
}

func TestOrderedCallRunsAfterTheRunThatIsAboutToEnd(t *testing.T) {
	o, _, stop, _ := working(t)
	defer stop()
	j := newJob(o, testIDs, sealedBatch(t, o, 1))
	first, second := j.l.item(&journal.CallRecord{}, 1), j.l.item(&journal.CallRecord{}, 1)
	if !j.l.calls.enlist(first) || j.l.calls.enlist(second) {
		t.Fatal("two runs are in progress")
	}
	begun := make(chan bool, 1)
	go func() { begun <- j.enlistNext(second) }()
	first.done(nil)
	if !<-begun || j.l.calls.find(0) != second {
		t.Error("the second run does not begin")
	}
	j.l.life.giveUp()
	if j.enlistNext(first) {
		t.Error("a run begins after the job has ended")
	}
}
