package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

func TestBatchLifecycle(t *testing.T) {
	s, ctx := start(t), t.Context()
	id, w := begin(t, s)
	first, err := w.Append(ctx, calls(0, 2500)) // three messages
	ok(t, err)
	if first != 0 || w.Next() != 2500 {
		t.Fatalf("first %d, next %d", first, w.Next())
	}
	m, err := w.Seal(ctx)
	ok(t, err)
	if m.State != journal.Sealed || m.Calls != 2500 {
		t.Fatalf("sealed: %+v", m)
	}
	o := claim(t, s, id)
	if o.Epoch() != 1 || o.Progress().Accepted() != 2500 || !o.Held() {
		t.Fatalf("claimed with epoch %d and %d calls", o.Epoch(), o.Progress().Accepted())
	}
	_, err = o.SetState(ctx, func(m *journal.Manifest) error { m.State = journal.Running; return nil })
	ok(t, err)
	for i := 0; i < 2500; {
		cs, err := o.Read(ctx, uint64(i), 700)
		ok(t, err)
		if len(cs) == 0 {
			t.Fatalf("no call from %d on", i)
		}
		for _, c := range cs {
			if c.Index != uint64(i) || c.CustomID != fmt.Sprint(i) || string(c.Arguments) != fmt.Sprintf(`{"n":%d}`, i) {
				t.Fatalf("call %d is %+v", i, c)
			}
			i++
		}
		var in []uint64
		var rs []journal.ResultRecord
		for _, c := range cs {
			in, rs = append(in, c.Index), append(rs, done(int(c.Index)))
		}
		ok(t, o.Intend(ctx, journal.Intents(in, 1, "w_1")))
		ok(t, o.Results(ctx, rs...))
	}
	m, err = o.SetState(ctx, func(m *journal.Manifest) error { m.End(journal.Completed, ""); return nil })
	ok(t, err)
	if m.Counts.Succeeded != 2500 {
		t.Errorf("counts %+v", m.Counts)
	}
	ok(t, o.Release(ctx))
	if got := readAll(t, s, id, 333); len(got) != 2500 {
		t.Errorf("read %d results", len(got))
	}
	var followed int
	ok(t, s.Follow(ctx, schema.DefaultTenant, id, journal.Cursor{}, func(rs []journal.ResultRecord, _ journal.Cursor) error { followed += len(rs); return nil }))
	if followed != 2500 {
		t.Errorf("followed %d results", followed)
	}
	ok(t, s.PurgeCalls(ctx, schema.DefaultTenant, id))
	_, err = s.FindCall(ctx, schema.AllTenants(), id, 7)
	kind(t, err, schema.KindNotFound)
	_, err = s.Claim(ctx, schema.DefaultTenant, id, "fd-2")
	kind(t, err, schema.KindConflict)
	r, err := s.FindResult(ctx, schema.DefaultTenant, id, 1234, journal.Cursor{})
	ok(t, err)
	if string(r.Body) != `{"r":1234}` {
		t.Errorf("result %s", r.Body)
	}
	ok(t, s.Delete(ctx, schema.DefaultTenant, id))
	_, err = s.Get(ctx, schema.DefaultTenant, id)
	kind(t, err, schema.KindNotFound)
	if ms, _ := s.List(schema.AllTenants(), journal.Filter{}, ""); len(ms) != 0 {
		t.Errorf("still listed: %v", ms)
	}
}

// readAll reads the results in pages and checks that none comes twice.
func readAll(t *testing.T, s *journal.Store, id schema.BatchID, page int) []journal.ResultRecord {
	t.Helper()
	var all []journal.ResultRecord
	seen := map[string]bool{}
	for text := ""; ; {
		at, err := journal.ParseCursor(text)
		ok(t, err)
		rs, next, err := s.Results(t.Context(), schema.DefaultTenant, id, at, page)
		ok(t, err)
		if len(rs) == 0 {
			return all
		}
		if len(rs) > page {
			t.Fatalf("a page of %d", len(rs))
		}
		for _, r := range rs {
			key := fmt.Sprint(r.Index, r.Attempt, r.Outcome, r.Settle)
			if seen[key] {
				t.Fatalf("result %s came twice", key)
			}
			seen[key] = true
			all = append(all, r)
		}
		text = next.String()
	}
}

func TestAnyIndexIsFoundWithoutReadingFromTheBeginning(t *testing.T) {
	s, ctx := start(t), t.Context()
	id, w := begin(t, s)
	other, v := begin(t, s)
	for i := range 100 { // many messages, mixed with those of another journal
		_, err := w.Append(ctx, calls(3*i, 3))
		ok(t, err)
		_, err = v.Append(ctx, calls(i, 1))
		ok(t, err)
	}
	for i := 0; i < 300; i += 7 {
		c, err := s.FindCall(ctx, schema.AllTenants(), id, uint64(i))
		ok(t, err)
		if c.Index != uint64(i) || c.CustomID != fmt.Sprint(i) {
			t.Fatalf("call %d is %+v", i, c)
		}
	}
	_, err := s.FindCall(ctx, schema.AllTenants(), id, 300)
	kind(t, err, schema.KindNotFound)
	_, err = s.FindCall(ctx, schema.AllTenants(), other, 100)
	kind(t, err, schema.KindNotFound)
	o := claim(t, s, id)
	for _, from := range []int{299, 150, 151, 0, 298} {
		cs, err := o.Read(ctx, uint64(from), 2)
		ok(t, err)
		if len(cs) == 0 || cs[0].Index != uint64(from) {
			t.Fatalf("from %d: %+v", from, cs)
		}
	}
	if cs, err := o.Read(ctx, 300, 2); err != nil || len(cs) > 0 {
		t.Errorf("beyond the end: %v, %v", cs, err)
	}
	_, err = w.Append(ctx, calls(300, 1))
	ok(t, err)
	if cs, err := o.Read(ctx, 300, 2); err != nil || len(cs) != 1 {
		t.Errorf("what was appended since: %v, %v", cs, err)
	}
}

func TestCanceledAppendStillReportsItsOutcome(t *testing.T) {
	s, ctx := start(t), t.Context()
	_, w := begin(t, s)
	type end struct {
		first uint64
		err   error
	}
	over := make(chan end, 2)
	then := func(first uint64, err error) { over <- end{first, err} }
	leaves, leave := context.WithCancel(ctx)
	ok(t, w.AppendThen(leaves, then, calls(0, 2)...))
	leave()
	ok(t, w.AppendThen(ctx, then, calls(2, 1)...))
	for _, want := range []uint64{0, 2} {
		if e := <-over; e.err != nil || e.first != want {
			t.Errorf("stored at %d, %v; want %d", e.first, e.err, want)
		}
	}
	w.Close()
	if err := w.AppendThen(ctx, then, calls(3, 1)...); err == nil {
		t.Error("a writer that was closed takes calls")
	}
	if len(over) > 0 {
		t.Errorf("of what was not taken it is said: %+v", <-over)
	}
}

func TestConcurrentAppendsShareMessages(t *testing.T) {
	s, ctx := start(t), t.Context()
	id, w := begin(t, s)
	const n = 400
	index := make([]uint64, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			var err error
			if index[i], err = w.Append(ctx, calls(i, 1)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	sorted := slices.Sorted(slices.Values(index))
	for i, at := range sorted {
		if at != uint64(i) {
			t.Fatalf("index %d is missing or was given twice", i)
		}
	}
	for i, at := range index {
		c, err := s.FindCall(ctx, schema.AllTenants(), id, at)
		ok(t, err)
		if c.CustomID != fmt.Sprint(i) {
			t.Fatalf("call %d was told index %d, where %s stands", i, at, c.CustomID)
		}
		if i > 20 {
			break
		}
	}
	o := claim(t, s, id)
	for i := range n {
		wg.Go(func() {
			if err := o.Intend(ctx, journal.Intent(uint64(i), 1, "w")); err != nil {
				t.Error(err)
			}
			if err := o.Results(ctx, done(i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if c := o.Progress().Counts(); c.Succeeded != n {
		t.Errorf("counts %+v", c)
	}
}

func TestAppendsOfSeveralMessagesStayTogether(t *testing.T) {
	s, ctx := start(t), t.Context()
	id, w := begin(t, s)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			cs := calls(0, 2300)
			for i := range cs {
				cs[i].Tool = fmt.Sprint(g)
			}
			first, err := w.Append(ctx, cs)
			if err != nil {
				t.Error(err)
				return
			}
			for _, i := range []uint64{0, 999, 1000, 2299} {
				c, err := s.FindCall(ctx, schema.AllTenants(), id, first+i)
				if err != nil || c.Tool != fmt.Sprint(g) || c.CustomID != fmt.Sprint(i) {
					t.Errorf("call %d of %d: %+v, %v", i, g, c, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestLaterWriterFencesOffTheEarlierWriter(t *testing.T) {
	s, ctx := start(t), t.Context()
	id, w := begin(t, s)
	_, err := w.Append(ctx, calls(0, 10))
	ok(t, err)
	v, err := s.Write(ctx, schema.DefaultTenant, id)
	ok(t, err)
	defer v.Close()
	if v.Next() != 10 {
		t.Errorf("resumes at %d", v.Next())
	}
	_, err = w.Append(ctx, calls(10, 1))
	kind(t, err, schema.KindConflict)
	first, err := v.Append(ctx, calls(10, 5))
	ok(t, err)
	if first != 10 {
		t.Errorf("first %d", first)
	}
	_, err = v.Seal(ctx)
	ok(t, err)
	_, err = v.Append(ctx, calls(15, 1))
	kind(t, err, schema.KindConflict)
	_, err = s.Write(ctx, schema.DefaultTenant, id)
	kind(t, err, schema.KindConflict)
	m, err := s.Seal(ctx, schema.DefaultTenant, id) // once more changes nothing
	ok(t, err)
	if m.Calls != 15 {
		t.Errorf("%d calls", m.Calls)
	}
}

func TestEarlierWriterOfAnEmptyJournalIsFencedOff(t *testing.T) {
	s, ctx := start(t), t.Context()
	id, w := begin(t, s)
	v, err := s.Write(ctx, schema.DefaultTenant, id)
	ok(t, err)
	defer v.Close()
	_, err = w.Append(ctx, calls(0, 1))
	kind(t, err, schema.KindConflict)
	_, err = v.Append(ctx, calls(0, 1))
	ok(t, err)
}

func TestACanceledJournalTakesNoMoreCalls(t *testing.T) {
	s, ctx := start(t), t.Context()
	id, w := begin(t, s)
	_, err := w.Append(ctx, calls(0, 3))
	ok(t, err)
	o := claim(t, s, id)
	_, err = s.Change(ctx, schema.DefaultTenant, id, func(m *journal.Manifest) error { m.State = journal.Canceling; return nil })
	ok(t, err)
	_, err = w.Append(ctx, calls(3, 1))
	kind(t, err, schema.KindConflict)
	m, err := s.Seal(ctx, schema.DefaultTenant, id)
	ok(t, err)
	if m.State != journal.Canceling || m.Calls != 3 {
		t.Errorf("%+v", m)
	}
	for i := range 3 {
		ok(t, o.Results(ctx, journal.ResultRecord{Index: uint64(i), Outcome: journal.Canceled}))
	}
	m, err = o.SetState(ctx, func(m *journal.Manifest) error { m.End(journal.EndedByCancel, "asked"); return nil })
	ok(t, err)
	if m.Counts.Canceled != 3 {
		t.Errorf("%+v", m.Counts)
	}
}

func TestInterruptedSealIsCompletedByTheNextWriter(t *testing.T) {
	p := newPlace(t, embedded.Options{})
	c, err := bus.Connect(t.Context(), bus.Options{InProcess: p.s, Name: "test", Log: p.log})
	ok(t, err)
	t.Cleanup(c.Close)
	s, ctx := open(t, c, journal.Options{}), t.Context()
	id, w := begin(t, s)
	_, err = w.Append(ctx, calls(0, 3))
	ok(t, err)
	w.Close()
	// What a writer leaves that dies before it tells the manifest.
	raw, err := journal.OpenLogs(ctx, c, journal.Options{})
	ok(t, err)
	last, err := raw.Last(ctx, id, journal.LogCalls)
	ok(t, err)
	_, err = raw.Append(ctx, id, journal.LogCalls, journal.AppendHead(nil, &journal.Head{
		Log: journal.LogCalls, Epoch: 9, Writer: 9, Number: 1, First: 3, Sealed: true, At: time.Now(),
	}), last.Sequence)
	ok(t, err)
	_, err = s.Write(ctx, schema.DefaultTenant, id)
	kind(t, err, schema.KindConflict)
	m, err := s.Get(ctx, schema.DefaultTenant, id)
	ok(t, err)
	if m.State != journal.Sealed || m.Calls != 3 {
		t.Errorf("%+v", m)
	}
}

func TestNextOwnerFindsUnfinishedCalls(t *testing.T) {
	s, ctx := start(t), t.Context()
	id, w := begin(t, s)
	_, err := w.Append(ctx, calls(0, 100))
	ok(t, err)
	o := claim(t, s, id)
	_, err = s.Claim(ctx, schema.DefaultTenant, id, "fd-2")
	kind(t, err, schema.KindConflict)
	ok(t, o.Intend(ctx, journal.Intents([]uint64{0, 1, 2, 3, 10, 11, 50}, 1, "w_1")))
	ok(t, o.Intend(ctx, journal.IntentRecord{Ranges: journal.Intent(11, 1, "").Ranges, Attempt: 1, Void: true}))
	ok(t, o.Intend(ctx, journal.Intent(3, 2, "w_2")))
	ok(t, o.Results(ctx, done(0), done(2), journal.ResultRecord{Index: 10, Outcome: journal.Unknown, Attempt: 1},
		journal.ResultRecord{Index: 60, Outcome: journal.Dead, Attempt: 3}, journal.ResultRecord{Index: 70, Outcome: journal.Dead, Attempt: 3},
		journal.ResultRecord{Index: 80, Outcome: journal.Succeeded, ToolError: true}))
	ok(t, o.Results(ctx, journal.ResultRecord{Index: 70, Settle: journal.SettleAgain, By: "eve", Reason: "try", Attempt: 3}))
	o.Close() // dies
	o, err = s.Seize(ctx, id, "fd-2")
	ok(t, err)
	defer o.Close()
	p := o.Progress()
	open := p.Open()
	if len(open) != 3 || open[1].Worker != "w_1" || open[3].Attempt != 2 || open[3].Worker != "w_2" {
		t.Errorf("open: %+v", open)
	}
	want := journal.Counts{Succeeded: 3, Unknown: 1, Dead: 1, ToolErrors: 1}
	if diff := cmp.Diff(want, p.Counts()); diff != "" {
		t.Error(diff)
	}
	if len(p.Unsettled()) != 2 || p.Again()[70].Attempt != 3 || p.Ended(70) || !p.Ended(60) || p.Next(0) != 1 || p.Next(60) != 61 || p.Next(99) != 99 {
		t.Errorf("unsettled %v, again %v, next %d %d %d", p.Unsettled(), p.Again(), p.Next(0), p.Next(60), p.Next(99))
	}
	ok(t, o.Results(ctx, done(0))) // dropped
	ok(t, o.Results(ctx, journal.ResultRecord{Index: 10, Outcome: journal.Succeeded, Attempt: 1, Body: []byte("late")}))
	ok(t, o.Results(ctx, journal.ResultRecord{Index: 70, Outcome: journal.Succeeded, Attempt: 4, Body: []byte("again")}))
	for index, body := range map[uint64]string{10: "late", 70: "again", 0: `{"r":0}`} {
		r, err := s.FindResult(ctx, schema.DefaultTenant, id, index, journal.Cursor{})
		ok(t, err)
		if string(r.Body) != body {
			t.Errorf("result %d: %s", index, r.Body)
		}
	}
}

func TestAReleasedJournalCanBeClaimedAtOnce(t *testing.T) {
	s, ctx := start(t), t.Context()
	id, _ := begin(t, s)
	for e := range uint64(3) {
		o, err := s.Claim(ctx, schema.DefaultTenant, id, "fd")
		ok(t, err)
		if owner, err := s.OwnerOf(ctx, id); err != nil || owner != "fd" || o.Epoch() != e+1 {
			t.Errorf("owner %q, epoch %d, %v", owner, o.Epoch(), err)
		}
		ok(t, o.Release(ctx))
		kind(t, o.Results(ctx, done(0)), schema.KindUnavailable)
	}
}

func TestOwnerOfASeizedJournalIsNotifiedAndRefused(t *testing.T) {
	s, ctx := newPlace(t, embedded.Options{}).connect(t, journal.Options{}), t.Context()
	id, w := begin(t, s)
	_, err := w.Append(ctx, calls(0, 3))
	ok(t, err)
	o := claim(t, s, id)
	next, err := s.Seize(ctx, id, "fd-2")
	ok(t, err)
	defer next.Close()
	kind(t, o.Intend(ctx, journal.Intent(0, 1, "")), schema.KindConflict)
	<-o.Lost()
	kind(t, o.Results(ctx, done(0)), schema.KindConflict)
	_, err = o.SetState(ctx, func(*journal.Manifest) error { return nil })
	kind(t, err, schema.KindConflict)
	if o.Held() {
		t.Error("the loser holds it")
	}
	ok(t, o.Release(ctx))
	if owner, err := s.OwnerOf(ctx, id); err != nil || owner != "fd-2" {
		t.Errorf("the loser gave back what was not his: owner %q, %v", owner, err)
	}
}

func TestIdleOwnerIsNotifiedWhenItsLeaseIsLost(t *testing.T) {
	s, ctx := newPlace(t, embedded.Options{}).connect(t, journal.Options{Lease: time.Second}), t.Context()
	id, _ := begin(t, s)
	o := claim(t, s, id)
	next, err := s.Seize(ctx, id, "fd-2")
	ok(t, err)
	defer next.Close()
	select {
	case <-o.Lost():
	case <-time.After(time.Minute):
		t.Fatal("it was not told")
	}
}

func TestLargeBytesAreStoredOutsideTheLog(t *testing.T) {
	s := newPlace(t, embedded.Options{MaxPayload: 1 << 20}).connect(t, journal.Options{})
	ctx := t.Context()
	id, w := begin(t, s)
	big := bytes.Repeat([]byte("0123456789abcdef"), 200<<10) // more than three messages
	mid := bytes.Repeat([]byte("x"), 250<<10)
	cs := calls(0, 4)
	cs[1].Arguments, cs[2].Arguments, cs[3].Arguments = big, mid, mid
	_, err := w.Append(ctx, cs)
	ok(t, err)
	o := claim(t, s, id)
	got, err := o.Read(ctx, 0, 10)
	ok(t, err)
	if len(got) != 4 || got[1].ArgumentsObject.Size != int64(len(big)) || got[1].Arguments != nil || !bytes.Equal(got[2].Arguments, mid) {
		t.Fatalf("read %d calls", len(got))
	}
	b, err := s.Arguments(ctx, schema.DefaultTenant, id, &got[1])
	ok(t, err)
	if !bytes.Equal(b, big) {
		t.Error("the arguments are others")
	}
	ok(t, o.Results(ctx, journal.ResultRecord{Index: 1, Outcome: journal.Succeeded, Body: big}))
	r, err := s.FindResult(ctx, schema.DefaultTenant, id, 1, journal.Cursor{})
	ok(t, err)
	if b, err = s.ResultBody(ctx, schema.DefaultTenant, id, r); err != nil || !bytes.Equal(b, big) {
		t.Errorf("the result is another, %v", err)
	}
	_, err = s.ResultBody(ctx, schema.DefaultTenant, id, &journal.ResultRecord{BodyObject: journal.Object{Name: r.BodyObject.Name, SHA256: "00", Size: r.BodyObject.Size}})
	kind(t, err, schema.KindInternal)
	ok(t, o.Results(ctx, journal.ResultRecord{Index: 2, Outcome: journal.Failed, Error: big}, journal.ResultRecord{Index: 3, Outcome: journal.Failed, Error: []byte("{}")}))
	for index, want := range map[uint64][]byte{2: big, 3: []byte("{}")} {
		if r, err = s.FindResult(ctx, schema.DefaultTenant, id, index, journal.Cursor{}); err != nil {
			t.Fatal(err)
		}
		if b, err = s.ResultBody(ctx, schema.DefaultTenant, id, r); err != nil || !bytes.Equal(b, want) {
			t.Errorf("the error of call %d is another, %v", index, err)
		}
	}
	kind(t, o.Results(ctx, journal.ResultRecord{Index: 1 << 40, Outcome: journal.Failed}), schema.KindInternal)
	kind(t, o.Intend(ctx, journal.Intents([]uint64{5, 3}, 1, "")), schema.KindInternal)
	kind(t, o.Intend(ctx, journal.IntentRecord{}), schema.KindInternal)
	_, err = w.Append(ctx, []journal.CallRecord{{Arguments: make([]byte, 65<<20)}})
	kind(t, err, schema.KindTooLarge)
	_, err = w.Append(ctx, []journal.CallRecord{{Warrant: make([]byte, 600<<10)}})
	kind(t, err, schema.KindTooLarge)
}

func TestAFollowerSeesEachResultOnceAndTheEnd(t *testing.T) {
	p := newPlace(t, embedded.Options{})
	s, other := p.connect(t, journal.Options{}), p.connect(t, journal.Options{})
	ctx := t.Context()
	id, w := begin(t, s)
	const n = 500
	_, err := w.Append(ctx, calls(0, n))
	ok(t, err)
	_, err = w.Seal(ctx)
	ok(t, err)
	o := claim(t, s, id)
	seen := make(map[uint64]int)
	followed := make(chan error, 1)
	go func() {
		stop := errors.New("stop")
		at := journal.Cursor{}
		for { // resumes from its cursor each 50 results
			took := 0
			err := other.Follow(ctx, schema.DefaultTenant, id, at, func(rs []journal.ResultRecord, next journal.Cursor) error {
				for _, r := range rs {
					seen[r.Index]++
				}
				at = next
				if took += len(rs); took >= 50 {
					return stop
				}
				return nil
			})
			if !errors.Is(err, stop) {
				followed <- err
				return
			}
		}
	}()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := o.Results(ctx, done(i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	_, err = o.SetState(ctx, func(m *journal.Manifest) error { m.End(journal.Completed, ""); return nil })
	ok(t, err)
	ok(t, <-followed)
	for i := range uint64(n) {
		if seen[i] != 1 {
			t.Fatalf("result %d was seen %d times", i, seen[i])
		}
	}
}

func TestAnOwnerIsWokenByNewCalls(t *testing.T) {
	p := newPlace(t, embedded.Options{})
	s, other := p.connect(t, journal.Options{}), p.connect(t, journal.Options{})
	ctx := t.Context()
	id, w := begin(t, s)
	o := claim(t, other, id)
	const n = 20
	read := make(chan int, n)
	go func() {
		next := 0
		for next < n {
			cs, err := o.Read(ctx, uint64(next), 5)
			if err == nil && len(cs) == 0 {
				err = o.Wait(ctx)
			}
			if err != nil {
				t.Error(err)
				close(read)
				return
			}
			if next += len(cs); len(cs) > 0 {
				read <- next
			}
		}
	}()
	begun := time.Now()
	for i := range n {
		_, err := w.Append(ctx, calls(i, 1))
		ok(t, err)
		if got := <-read; got != i+1 {
			t.Fatalf("read %d of %d", got, i+1)
		}
	}
	// One that is not woken looks again after 3 s, for each of them.
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it was not woken: %s", took)
	}
}

func TestIdempotencyKeyHasOneEntry(t *testing.T) {
	s, ctx := start(t), t.Context()
	var mu sync.Mutex
	var firsts int
	kept := map[string]int{}
	var wg sync.WaitGroup
	hash := journal.KeyHash(schema.PrincipalID{Name: "ann"}, "k")
	for i := range 50 {
		wg.Go(func() {
			e, first, err := s.Remember(ctx, hash, journal.Entry{Fingerprint: "f", Journal: "j", Index: uint64(i)}, time.Hour)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if first {
				firsts++
			}
			kept[fmt.Sprint(e.Index)]++
		})
	}
	wg.Wait()
	if firsts != 1 || len(kept) != 1 {
		t.Errorf("%d were first, entries %v", firsts, kept)
	}
	e, err := s.Recall(ctx, hash)
	ok(t, err)
	if kept[fmt.Sprint(e.Index)] != 50 {
		t.Errorf("recalled %+v", e)
	}
	_, err = s.Recall(ctx, journal.KeyHash(schema.PrincipalID{Name: "an"}, "nk"))
	kind(t, err, schema.KindNotFound)
}

func TestFullStreamRefusesAppendsUntilThereIsSpace(t *testing.T) {
	s := newPlace(t, embedded.Options{}).connect(t, journal.Options{MaxBytes: 256 << 10})
	ctx := t.Context()
	fill, fw := begin(t, s)
	var n int
	var err error
	for err == nil {
		cs := calls(0, 1)
		cs[0].Arguments = make([]byte, 20<<10)
		if _, err = fw.Append(ctx, cs); err == nil {
			n++
		}
	}
	kind(t, err, schema.KindUnavailable)
	if e := schema.AsError(err); !e.Retryable || e.RetryAfter == 0 {
		t.Errorf("%+v", e)
	}
	if fw.Next() != uint64(n) {
		t.Errorf("next %d after %d", fw.Next(), n)
	}
	_, w := begin(t, s)
	_, err = w.Append(ctx, []journal.CallRecord{{Arguments: make([]byte, 20<<10)}})
	kind(t, err, schema.KindUnavailable)
	_, err = fw.Seal(ctx) // there is room for what lets it end
	ok(t, err)
	_, err = s.Change(ctx, schema.DefaultTenant, fill, func(m *journal.Manifest) error { m.End(journal.EndedByFailure, "no space"); return nil })
	ok(t, err)
	ok(t, s.PurgeCalls(ctx, schema.DefaultTenant, fill))
	first, err := w.Append(ctx, calls(0, 1))
	ok(t, err)
	if first != 0 {
		t.Errorf("first %d", first)
	}
}

func TestManifestsAreListedByFilter(t *testing.T) {
	p := newPlace(t, embedded.Options{})
	s := p.connect(t, journal.Options{})
	ctx := t.Context()
	for i := range 25 {
		m := batch()
		m.Principal.Name = []string{"ann", "ben"}[i%2]
		ok(t, s.Create(ctx, m))
		if i%5 == 0 {
			_, err := s.Seal(ctx, schema.DefaultTenant, m.ID)
			ok(t, err)
			_, err = s.Change(ctx, schema.DefaultTenant, m.ID, func(m *journal.Manifest) error { m.End(journal.EndedByCancel, ""); return nil })
			ok(t, err)
		}
	}
	other := p.connect(t, journal.Options{}) // reads what was there
	for name, s := range map[string]*journal.Store{"same": s, "other": other} {
		var found int
		var last time.Time
		for cursor, more := "", true; more; {
			var ms []*journal.Manifest
			ms, cursor = s.List(schema.AllTenants(), journal.Filter{Principal: "ann", States: []journal.State{journal.Receiving}, Limit: 3}, cursor)
			more = cursor != ""
			for _, m := range ms {
				if m.Principal.Name != "ann" || m.State != journal.Receiving || !last.IsZero() && m.Created.After(last) {
					t.Errorf("%s: %+v", name, m)
				}
				last = m.Created
				found++
			}
		}
		all := s.Unended(schema.AllTenants(), func(*journal.Manifest) bool { return true })
		few := s.Unended(schema.AllTenants(), func(m *journal.Manifest) bool { return m.Principal.Name == "ann" })
		if found != 10 || len(all) != 20 || len(few) != 10 {
			t.Errorf("%s: found %d, unended %d, of ann %d", name, found, len(all), len(few))
		}
		if !slices.IsSortedFunc(all, func(a, b *journal.Manifest) int { return a.Created.Compare(b.Created) }) {
			t.Errorf("%s: those that have not ended are not in their order", name)
		}
	}
	m := batch()
	m.Expires = time.Now().Add(s.MaxLife() + time.Hour)
	kind(t, s.Create(ctx, m), schema.KindInvalidRequest)
	m = batch()
	ok(t, s.Create(ctx, m))
	again := batch()
	again.ID = m.ID
	kind(t, s.Create(ctx, again), schema.KindConflict)
}

func TestInvalidManifestChangesAreRefused(t *testing.T) {
	s, ctx := start(t), t.Context()
	id, _ := begin(t, s)
	for what, f := range map[string]func(*journal.Manifest){
		"ends without a seal": func(m *journal.Manifest) { m.State = journal.Ended },
		"runs unsealed":       func(m *journal.Manifest) { m.State = journal.Running },
		"another principal":   func(m *journal.Manifest) { m.Principal.Name = "eve" },
		"another expiry":      func(m *journal.Manifest) { m.Expires = m.Expires.Add(1) },
		"owner without epoch": func(m *journal.Manifest) { m.Owner = "eve" },
		"seal by hand":        func(m *journal.Manifest) { m.State = journal.Sealed },
	} {
		if _, err := s.Change(ctx, schema.DefaultTenant, id, func(m *journal.Manifest) error { f(m); return nil }); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
	_, err := s.Change(ctx, schema.DefaultTenant, "nothing", func(*journal.Manifest) error { return nil })
	kind(t, err, schema.KindNotFound)
	kind(t, s.PurgeCalls(ctx, schema.DefaultTenant, id), schema.KindConflict)
}

func TestTheFirstCallIsFoundAtOnceAfterManyTakeovers(t *testing.T) {
	s, ctx := start(t), t.Context()
	quick := func(id schema.BatchID) time.Duration {
		t.Helper()
		best := time.Hour
		for range 5 {
			began := time.Now()
			found, err := s.Calls(ctx, schema.DefaultTenant, id, 0, 10)
			ok(t, err)
			if len(found) != 10 || found[0].Index != 0 || found[9].CustomID != "9" {
				t.Fatalf("found %d calls, the first of them %+v", len(found), found[0])
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	plain, w := begin(t, s)
	_, err := w.Append(ctx, calls(0, 10))
	ok(t, err)
	m := batch()
	ok(t, s.Create(ctx, m))
	const takeovers = 1000
	for range takeovers {
		w, err := s.Write(ctx, schema.DefaultTenant, m.ID)
		ok(t, err)
		w.Close()
	}
	none, err := s.Calls(ctx, schema.DefaultTenant, m.ID, 0, 10)
	ok(t, err)
	if len(none) != 0 {
		t.Errorf("%d calls before there are any", len(none))
	}
	last, err := s.Write(ctx, schema.DefaultTenant, m.ID)
	ok(t, err)
	defer last.Close()
	_, err = last.Append(ctx, calls(0, 10))
	ok(t, err)
	if one, many := quick(plain), quick(m.ID); many > takeovers/4*one {
		t.Errorf("after %d takeovers it takes %s, else %s", takeovers, many, one)
	}
}
