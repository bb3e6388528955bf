package batch

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/calls/quota"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

var (
	ann = schema.Principal{Name: "ann"}
	ben = schema.Principal{Name: "ben"}
)

// taking returns batches that receive calls and run none of them.
func taking(t *testing.T, rules ...settings.PrincipalRule) *Batches {
	t.Helper()
	o := &Options{Store: openStore(t), ID: "frontdoor-1", Log: slog.New(slog.DiscardHandler)}
	if len(rules) > 0 {
		o.Quota = quota.Open(quota.Options{Rules: settings.Limits{Principals: rules}, Log: o.Log})
		t.Cleanup(o.Quota.Close)
	}
	o.fill()
	js, in := newJobs(t.Context(), o, testIDs, new(sync.WaitGroup)), newIntakes()
	return &Batches{o: o, ids: testIDs, jobs: js, backlog: newBacklog(t.Context(), o, js, in), intakes: in}
}

// empty creates a batch of ann that no job runs.
func (b *Batches) empty(t *testing.T) (id schema.BatchID) {
	t.Helper()
	m := &journal.Manifest{ID: newJournalID(journal.Batch), Kind: journal.Batch, Principal: ann, Expires: time.Now().Add(time.Hour)}
	if err := b.o.Store.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return m.ID
}

func (b *Batches) mustTake(t *testing.T, id schema.BatchID) *Intake {
	t.Helper()
	in, err := b.Intake(t.Context(), id, ann)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	return in
}

func add(t *testing.T, in *Intake, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := in.Add(t.Context(), journal.CallRecord{Server: "demo", Tool: "echo", CustomID: name, Arguments: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
}

// stored returns the content of the journal, a word for each call: its custom id, with the prefix
// "refused" if it does not run.
func (b *Batches) stored(t *testing.T, id schema.BatchID) (words []string) {
	t.Helper()
	for {
		found, err := b.o.Store.Calls(t.Context(), schema.DefaultTenant, id, uint64(len(words)), 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			return words
		}
		for _, c := range found {
			if c.Index != uint64(len(words)) {
				t.Errorf("call %d has the index %d", len(words), c.Index)
			}
			word := c.CustomID
			if c.Method == methodRefused {
				word = "refused" + word
			}
			words = append(words, word)
		}
	}
}

func TestDuplicateCustomIDOfAnotherConnectionIsRefused(t *testing.T) {
	b := taking(t)
	id := b.empty(t)
	first := b.mustTake(t, id)
	add(t, first, "a", "b", "a")
	if err := first.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	first.Close()
	second := b.mustTake(t, id)
	if next := second.Next(); next != 3 {
		t.Errorf("it goes on at %d", next)
	}
	add(t, second, "c", "b")
	if err := second.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if refused := second.Refused(); refused != 1 {
		t.Errorf("%d lines were refused", refused)
	}
	// Another front door does not know the custom ids, so it reads them.
	elsewhere := &Batches{o: b.o, ids: b.ids, jobs: b.jobs, backlog: b.backlog, intakes: newIntakes()}
	second.Close()
	third := elsewhere.mustTake(t, id)
	add(t, third, "c", "d")
	if _, err := third.Seal(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	want := []string{"a", "b", "refused", "c", "refused", "refused", "d"}
	if got := b.stored(t, id); !slices.Equal(got, want) {
		t.Errorf("stored are %q, want %q", got, want)
	}
}

func TestABatchTakesCallsOverOneConnectionAtATime(t *testing.T) {
	b := taking(t)
	id := b.empty(t)
	first := b.mustTake(t, id)
	if _, err := b.Intake(t.Context(), id, ann); schema.KindOf(err) != schema.KindConflict || !schema.AsError(err).Retryable {
		t.Errorf("a second connection: %v", err)
	}
	first.Close()
	second := b.mustTake(t, id)
	if _, err := second.Seal(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	second.Close()
	if _, err := b.Intake(t.Context(), id, ann); schema.KindOf(err) != schema.KindConflict || schema.AsError(err).Retryable {
		t.Errorf("after the seal: %v", err)
	}
	if _, err := b.Intake(t.Context(), id, ben); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("somebody else: %v", err)
	}
}

// A sender that has reached its quota is not read any further. When it disconnects, the error
// explains how to find out the number of stored calls.
func TestIntakeStopsAtTheQueueQuota(t *testing.T) {
	b := taking(t, settings.PrincipalRule{Queued: 3})
	id := b.empty(t)
	in := b.mustTake(t, id)
	add(t, in, "a", "b")
	if err := in.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	add(t, in, "c", "d", "e")
	left, leave := context.WithCancel(t.Context())
	defer leave()
	flushed := make(chan error, 1)
	go func() { flushed <- in.Flush(left) }()
	polltest.Until(t, "all that the quota permits is stored", func() bool { return in.stored.Load() == 3 })
	leave()
	if err := <-flushed; schema.KindOf(err) != schema.KindQuota {
		t.Errorf("two lines too many: %v", err)
	}
	if n := in.Stored(); n != 3 {
		t.Errorf("%d are stored", n)
	}
	in.Close()
	// The custom ids of dropped calls are free: the lines can be sent again.
	again := &Batches{o: b.o, ids: b.ids, jobs: b.jobs, backlog: newBacklog(t.Context(), &Options{Store: b.o.Store}, b.jobs, b.intakes), intakes: b.intakes}
	rest := again.mustTake(t, id)
	add(t, rest, "d", "e", "c")
	if err := rest.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := b.stored(t, id), []string{"a", "b", "c", "d", "e", "refused"}; !slices.Equal(got, want) {
		t.Errorf("stored are %q, want %q", got, want)
	}
}

func TestCustomIDsOfIdleBatchesAreEvicted(t *testing.T) {
	is := newIntakes()
	put := func(id schema.BatchID, used time.Time) {
		in := &Intake{id: id}
		if err := is.begin(in); err != nil {
			t.Fatal(err)
		}
		in.seen.next = 7
		is.end(in, true)
		is.names[id].used = used
	}
	for n := range 5 {
		put(schema.BatchID(fmt.Sprint("old-", n)), time.Now().Add(-2*keepNames))
	}
	put("new", time.Now())
	is.forgot = time.Time{}
	put("last", time.Now())
	if len(is.names) != 2 || is.accepted("new") != 7 || is.accepted("old-1") != 0 {
		t.Errorf("kept are %v", is.names)
	}
}
