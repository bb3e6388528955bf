package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, c *bus.Conn, o Options) *Log {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	l, err := Open(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func add(t *testing.T, l *Log, e Entry) {
	t.Helper()
	if err := l.Append(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

func sync1(t *testing.T, l *Log) {
	t.Helper()
	if err := l.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func verified(t *testing.T, l *Log) *Report {
	t.Helper()
	r, err := l.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// full is an entry with every field set.
func full() Entry {
	return Entry{
		Kind: Decided, At: time.Unix(1_800_000_000, 5).UTC(), CallID: "call_1", ApprovalID: "appr_1", BatchID: "batch_1", Tenant: "t1",
		By: "bob", Owner: "ops", Channel: "web", Server: "bank", Tool: "pay", Level: 2, PolicyVersion: "7", Rule: "two of ops", Outcome: "approve",
		Reason: "looks <right> & \"fine\"\n", ArgumentsDigest: "sha256:aa", DefinitionDigest: "sha256:bb", BindingDigest: "sha256:cc", ResultDigest: "sha256:dd",
		Worker: "w1", Attempt: "1", Error: "outcome-unknown", ReasonDigest: "sha256:ee", PermissionID: "perm_1", Repaired: true,
	}
}

func TestRecordFormatIsStable(t *testing.T) {
	var lines []byte
	prev := start()
	for i, e := range []Entry{{Kind: Asked, At: time.Unix(1_800_000_000, 0).UTC()}, full()} {
		r := Record{Version: version, Writer: "fd_1", Seq: uint64(i + 1), Prev: prev, Entry: e}
		var err error
		if lines, err = appendLine(lines, &r); err != nil {
			t.Fatal(err)
		}
		prev = r.Hash
	}
	const golden = "testdata/records.ndjson"
	if *update {
		if err := os.WriteFile(golden, lines, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(lines, want) {
		t.Errorf("got:\n%s", lines)
	}
	prev = start()
	for line := range bytes.Lines(want) {
		r, err := parseLine(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil || r.Prev != prev {
			t.Fatalf("%v, %v", r, err)
		}
		prev = r.Hash
		if !json.Valid(line) {
			t.Errorf("a line is not JSON: %s", line)
		}
	}
}

var update = flag.Bool("update", false, "write the golden files anew")

func TestEntryRoundTrips(t *testing.T) {
	l := open(t, bustest.Start(t).Connect(t, "test"), Options{Name: "front door 1!"})
	add(t, l, full())
	sync1(t, l)
	got, next, err := l.Read(t.Context(), schema.AllTenants(), Filter{}, "")
	if err != nil || len(got) != 1 || next != "" {
		t.Fatalf("%v, %q, %v", got, next, err)
	}
	if got[0].Entry != full() || got[0].Seq != 1 || got[0].Writer != l.Writer() || !strings.HasPrefix(l.Writer(), "front-door-1-_") {
		t.Errorf("%+v", got[0])
	}
}

func TestChainsOfConcurrentWritersVerify(t *testing.T) {
	s := bustest.Start(t)
	const writers, each = 4, 1500
	logs := make([]*Log, writers)
	var all sync.WaitGroup
	for i := range logs {
		logs[i] = open(t, s.Connect(t, "writer"), Options{Queue: 64, HeadEvery: 5 * time.Millisecond})
		for w := range 3 {
			all.Go(func() {
				for n := range each / 3 {
					if err := logs[i].Append(t.Context(), Entry{Kind: Ran, CallID: schema.CallID(fmt.Sprint(i, " ", w, " ", n))}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	for range 3 { // while they write
		if r := verified(t, logs[0]); !r.OK() {
			t.Fatalf("while it is written: %+v", r.Faults)
		}
	}
	all.Wait()
	for _, l := range logs {
		sync1(t, l)
	}
	r := verified(t, logs[0])
	if !r.OK() || r.Records != writers*each || r.Writers != writers {
		t.Errorf("%+v", r)
	}
	if r.Messages > r.Records/2 {
		t.Errorf("%d records took %d writes: they are not grouped", r.Records, r.Messages)
	}
	for _, l := range logs {
		l.Close()
		l.Close()
	}
	if err := logs[1].Append(t.Context(), Entry{Kind: Ran}); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("after the close: %v", err)
	}
	if err := logs[1].Sync(t.Context()); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("after the close: %v", err)
	}
	again := open(t, s.Connect(t, "reader"), Options{})
	if r := verified(t, again); !r.OK() || r.Records != writers*each {
		t.Errorf("after the close: %+v", r)
	}
}

func TestReadReturnsEveryRecordAcrossPages(t *testing.T) {
	l := open(t, bustest.Start(t).Connect(t, "test"), Options{})
	for n := range 1000 {
		add(t, l, Entry{Kind: Ran, CallID: schema.CallID(fmt.Sprint(n)), Server: schema.ServerID(fmt.Sprint("s", n%3)), At: time.Unix(int64(n), 0)})
		if n%100 == 0 {
			sync1(t, l)
		}
	}
	sync1(t, l)
	read := func(f Filter) (ids []schema.CallID) {
		for cursor, page := "", 0; ; page++ {
			got, next, err := l.Read(t.Context(), schema.AllTenants(), f, cursor)
			if err != nil || len(got) > max(f.Limit, 1) || page > 1001 {
				t.Fatalf("page %d: %d records, %v", page, len(got), err)
			}
			for _, r := range got {
				ids = append(ids, r.CallID)
			}
			if cursor = next; next == "" {
				return ids
			}
		}
	}
	ids := read(Filter{Limit: 7})
	if len(ids) != 1000 || !slices.IsSortedFunc(ids, func(a, b schema.CallID) int { return len(a) - len(b) }) || len(slices.Compact(ids)) != 1000 {
		t.Errorf("%d records", len(ids))
	}
	if ids := read(Filter{Limit: 10, Server: "s1", Since: time.Unix(100, 0), Until: time.Unix(200, 0)}); len(ids) != 34 {
		t.Errorf("%d of s1 in between", len(ids))
	}
	if ids := read(Filter{Limit: 10, Kinds: []Kind{Held}}); len(ids) != 0 {
		t.Errorf("%d held", len(ids))
	}
	for _, cursor := range []string{"x", "1", "1-x", "-1-0", "1--1"} {
		if _, _, err := l.Read(t.Context(), schema.AllTenants(), Filter{}, cursor); schema.KindOf(err) != schema.KindInvalidRequest {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}

// stored is a copy of the stored record.
type stored struct {
	messages []message
	heads    map[string][]byte
}

func exported(t *testing.T, l *Log) stored {
	t.Helper()
	heads, err := l.store.heads.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := stored{heads: heads}
	for next := uint64(1); ; {
		m, err := l.store.next(t.Context(), next)
		if errors.Is(err, bus.ErrNotFound) {
			return c
		}
		if err != nil {
			t.Fatal(err)
		}
		c.messages, next = append(c.messages, m), m.Sequence+1
	}
}

func (c stored) check() *Report {
	k := newChecker(c.heads, 0, time.Now())
	for _, m := range c.messages {
		k.message(m)
	}
	return k.finish(c.heads)
}

// history creates two closed chains of some messages.
func history(t *testing.T) stored {
	t.Helper()
	s := bustest.Start(t)
	one, two := open(t, s.Connect(t, "a"), Options{Name: "a"}), open(t, s.Connect(t, "b"), Options{Name: "b"})
	for n := range 18 {
		e := Entry{Kind: Decided, CallID: "call_1", By: "bob", Outcome: "approve", Attempt: fmt.Sprint(n)}
		add(t, one, e)
		add(t, two, Entry{Kind: Asked, CallID: schema.CallID(fmt.Sprint(n))})
		if n%3 == 0 {
			sync1(t, one)
			sync1(t, two)
		}
	}
	one.Close()
	two.Close()
	return exported(t, open(t, s.Connect(t, "reader"), Options{}))
}

func TestTenThousandManipulationsAreDetected(t *testing.T) {
	whole := history(t)
	if r := whole.check(); !r.OK() || r.Records != 36 {
		t.Fatalf("untouched: %+v", r)
	}
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	line := func(m message) (lines [][]byte, i int) {
		lines = bytes.SplitAfter(m.Data, []byte("\n"))
		lines = lines[:len(lines)-1]
		return lines, rnd.IntN(len(lines))
	}
	changes := []struct {
		name string
		do   func(c *stored) bool // returns false if it changed nothing
	}{
		{"flip a bit", func(c *stored) bool {
			m := pick(rnd, c)
			m.Data[rnd.IntN(len(m.Data))] ^= 1 << rnd.IntN(8)
			return true
		}},
		{"set a byte", func(c *stored) bool {
			m := pick(rnd, c)
			at, b := rnd.IntN(len(m.Data)), byte(rnd.IntN(256))
			was := m.Data[at]
			m.Data[at] = b
			return was != b
		}},
		{"delete a byte", func(c *stored) bool {
			m := pick(rnd, c)
			at := rnd.IntN(len(m.Data))
			m.Data = slices.Delete(m.Data, at, at+1)
			return true
		}},
		{"insert a byte", func(c *stored) bool {
			m := pick(rnd, c)
			m.Data = slices.Insert(m.Data, rnd.IntN(len(m.Data)+1), byte(rnd.IntN(256)))
			return true
		}},
		{"delete a record", func(c *stored) bool {
			m := pick(rnd, c)
			lines, i := line(*m)
			m.Data = bytes.Join(slices.Delete(lines, i, i+1), nil)
			return true
		}},
		{"repeat a record", func(c *stored) bool {
			m := pick(rnd, c)
			lines, i := line(*m)
			m.Data = bytes.Join(slices.Insert(lines, i, lines[i]), nil)
			return true
		}},
		{"swap two records", func(c *stored) bool {
			a, b := pick(rnd, c), pick(rnd, c)
			if a == b {
				lines, i := line(*a)
				j := rnd.IntN(len(lines))
				lines[i], lines[j] = lines[j], lines[i]
				a.Data = bytes.Join(lines, nil)
				return i != j
			}
			la, i := line(*a)
			lb, j := line(*b)
			la[i], lb[j] = lb[j], la[i]
			a.Data, b.Data = bytes.Join(la, nil), bytes.Join(lb, nil)
			return true
		}},
		{"insert a record of our own making", func(c *stored) bool {
			m := pick(rnd, c)
			lines, i := line(*m)
			r, err := parseLine(bytes.TrimSuffix(lines[i], []byte("\n")))
			if err != nil {
				t.Fatal(err)
			}
			r.Seq, r.Prev, r.By = r.Seq+1, r.Hash, "eve"
			forged, err := appendLine(nil, r)
			if err != nil {
				t.Fatal(err)
			}
			m.Data = bytes.Join(slices.Insert(lines, i+1, forged), nil)
			return true
		}},
		{"change a record and its hash", func(c *stored) bool {
			m := pick(rnd, c)
			lines, i := line(*m)
			r, err := parseLine(bytes.TrimSuffix(lines[i], []byte("\n")))
			if err != nil {
				t.Fatal(err)
			}
			r.By = "eve"
			if lines[i], err = appendLine(nil, r); err != nil {
				t.Fatal(err)
			}
			m.Data = bytes.Join(lines, nil)
			return true
		}},
		{"delete a message", func(c *stored) bool {
			i := rnd.IntN(len(c.messages))
			c.messages = slices.Delete(c.messages, i, i+1)
			return true
		}},
		{"repeat a message", func(c *stored) bool {
			i := rnd.IntN(len(c.messages))
			c.messages = slices.Insert(c.messages, i, c.messages[i])
			return true
		}},
		{"insert a message", func(c *stored) bool {
			i := rnd.IntN(len(c.messages))
			m := c.messages[i]
			m.Data = []byte("{}\n")[:rnd.IntN(4)]
			m.Sequence++
			c.messages = slices.Insert(c.messages, i+1, m)
			return true
		}},
		{"swap two messages", func(c *stored) bool {
			i, j := rnd.IntN(len(c.messages)), rnd.IntN(len(c.messages))
			c.messages[i], c.messages[j] = c.messages[j], c.messages[i]
			return i != j
		}},
		{"swap what two messages hold", func(c *stored) bool {
			a, b := pick(rnd, c), pick(rnd, c)
			a.Data, b.Data = b.Data, a.Data
			return a != b
		}},
		{"cut the end", func(c *stored) bool {
			c.messages = c.messages[:rnd.IntN(len(c.messages))]
			return true
		}},
		{"cut the end of one chain", func(c *stored) bool {
			writer := pick(rnd, c).Writer
			n := 1 + rnd.IntN(5)
			for i := len(c.messages) - 1; i >= 0 && n > 0; i-- {
				if c.messages[i].Writer == writer {
					c.messages = slices.Delete(c.messages, i, i+1)
					n--
				}
			}
			return true
		}},
		{"cut the beginning", func(c *stored) bool {
			c.messages = c.messages[1+rnd.IntN(len(c.messages)-1):]
			return true
		}},
		{"remove a chain", func(c *stored) bool {
			writer := pick(rnd, c).Writer
			c.messages = slices.DeleteFunc(c.messages, func(m message) bool { return m.Writer == writer })
			return true
		}},
		{"remove a head", func(c *stored) bool { delete(c.heads, pick(rnd, c).Writer); return true }},
		{"go on after the close", func(c *stored) bool {
			writer := pick(rnd, c).Writer
			var h Head
			if err := json.Unmarshal(c.heads[writer], &h); err != nil {
				t.Fatal(err)
			}
			r := Record{Version: version, Writer: h.Writer, Seq: h.Seq + 1, Prev: h.Hash, Entry: Entry{Kind: Decided, By: "eve"}}
			forged, err := appendLine(nil, &r)
			if err != nil {
				t.Fatal(err)
			}
			c.messages = append(c.messages, message{Writer: writer, Sequence: c.messages[len(c.messages)-1].Sequence + 1, Data: forged})
			return true
		}},
	}
	counts := map[string]int{}
	for n := 0; n < 10_000; {
		change := changes[n%len(changes)]
		c := stored{heads: maps.Clone(whole.heads), messages: slices.Clone(whole.messages)}
		for i := range c.messages {
			c.messages[i].Data = bytes.Clone(c.messages[i].Data)
		}
		if !change.do(&c) {
			continue
		}
		n++
		counts[change.name]++
		if c.check().OK() {
			t.Fatalf("change %d (%s, seed %d) was not found", n, change.name, seed)
		}
	}
	if len(counts) != len(changes) {
		t.Errorf("made: %v", counts)
	}
}

func pick(rnd *rand.Rand, c *stored) *message { return &c.messages[rnd.IntN(len(c.messages))] }

func TestExpiredRecordsAreNotAFault(t *testing.T) {
	c := history(t)
	c.messages = c.messages[5:]
	later := time.Now().Add(31 * 24 * time.Hour)
	k := newChecker(c.heads, 30*24*time.Hour, later)
	for _, m := range c.messages {
		k.message(m)
	}
	if r := k.finish(c.heads); !r.OK() || len(r.Trimmed) != 2 {
		t.Errorf("%+v", r)
	}
	k = newChecker(c.heads, 30*24*time.Hour, later)
	if r := k.finish(c.heads); !r.OK() || len(r.Trimmed) != 2 {
		t.Errorf("all gone: %+v", r)
	}
	k = newChecker(c.heads, 30*24*time.Hour, time.Now())
	for _, m := range c.messages {
		k.message(m)
	}
	if r := k.finish(c.heads); r.OK() {
		t.Error("records that are too young to be gone were not missed")
	}
}

func TestFullQueueIsReported(t *testing.T) {
	// A log whose goroutine never runs.
	l := &Log{Reader: &Reader{}, queue: make(chan *item, 1), stop: make(chan struct{}), done: make(chan struct{})}
	add(t, l, Entry{Kind: Asked})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Append(ctx, Entry{Kind: Asked}); schema.KindOf(err) != schema.KindUnavailable {
		t.Error(err)
	}
}

func TestWriterStopsAfterAForeignRecordInItsChain(t *testing.T) {
	l := open(t, bustest.Start(t).Connect(t, "test"), Options{})
	add(t, l, Entry{Kind: Asked})
	sync1(t, l)
	last, err := l.store.last(t.Context(), l.Writer())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.store.append(t.Context(), l.Writer(), []byte("forged\n"), last.Sequence); err != nil {
		t.Fatal(err)
	}
	add(t, l, Entry{Kind: Asked})
	if err := l.Sync(t.Context()); err == nil {
		t.Error("it went on")
	}
	if r := verified(t, l); r.OK() {
		t.Error("the forged record was not found")
	}
}

func TestReaderReadsButDoesNotCreateTheStore(t *testing.T) {
	s := bustest.Start(t)
	if _, err := OpenReader(t.Context(), s.Connect(t, "reader")); schema.KindOf(err) != schema.KindNotFound {
		t.Fatalf("where there is none: %v", err)
	}
	if _, err := OpenReader(t.Context(), s.Connect(t, "reader")); schema.KindOf(err) != schema.KindNotFound {
		t.Fatalf("the first try made one: %v", err)
	}
	l := open(t, s.Connect(t, "test"), Options{})
	add(t, l, full())
	sync1(t, l)
	r, err := OpenReader(t.Context(), s.Connect(t, "reader"))
	if err != nil {
		t.Fatal(err)
	}
	report, err := r.Verify(t.Context())
	if err != nil || !report.OK() || report.Records != 1 || report.Writers != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	if got, _, err := r.Read(t.Context(), schema.AllTenants(), Filter{}, ""); err != nil || len(got) != 1 || got[0].Entry != full() {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSinceReturnsRecordsFromATimeOn(t *testing.T) {
	l := open(t, bustest.Start(t).Connect(t, "test"), Options{})
	var times []time.Time
	for i := range 20 {
		add(t, l, Entry{Kind: Asked, CallID: schema.CallID(fmt.Sprint(i))})
		sync1(t, l)
		m, err := l.store.last(t.Context(), l.Writer())
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, m.Stored)
	}
	from := func(since time.Time) (ids []schema.CallID) {
		if err := l.Since(t.Context(), schema.AllTenants(), since, func(r *Record) bool { ids = append(ids, r.CallID); return len(ids) < 100 }); err != nil {
			t.Fatal(err)
		}
		return ids
	}
	for i, at := range times {
		if ids := from(at); len(ids) != 20-i || ids[0] != schema.CallID(fmt.Sprint(i)) {
			t.Errorf("from %d on: %v", i, ids)
		}
		if ids := from(at.Add(time.Nanosecond)); len(ids) != 19-i {
			t.Errorf("after %d: %v", i, ids)
		}
	}
	if ids := from(time.Time{}); len(ids) != 20 {
		t.Errorf("all: %v", ids)
	}
	n := 0
	if err := l.Since(t.Context(), schema.AllTenants(), time.Time{}, func(*Record) bool { n++; return n < 3 }); err != nil || n != 3 {
		t.Errorf("it went on for %d, %v", n, err)
	}
}

func TestConcurrentEntriesAreStoredInOneBatch(t *testing.T) {
	l := open(t, bustest.Start(t).Connect(t, "test"), Options{Linger: time.Hour})
	for range 50 {
		add(t, l, Entry{Kind: Asked})
	}
	sync1(t, l) // Sync does not wait for the linger time of an hour
	if r := verified(t, l); r.Records != 50 || r.Messages > 2 {
		t.Errorf("%+v", r)
	}
	add(t, l, Entry{Kind: Asked})
	l.Close() // nor does Close
	if r := verified(t, l); r.Records != 51 || !r.OK() {
		t.Errorf("%+v", r)
	}
}

func TestFaultKindsIdentifyTheManipulation(t *testing.T) {
	whole := history(t)
	last := func(c *stored) *message { return &c.messages[len(c.messages)-1] }
	for name, c := range map[string]struct {
		do   func(c *stored)
		want FaultKind
	}{
		"a letter changed":    {func(c *stored) { m := last(c); m.Data[len(m.Data)/2] ^= 1 }, Changed},
		"a message taken out": {func(c *stored) { c.messages = slices.Delete(c.messages, 2, 3) }, Gap},
		"the end cut off":     {func(c *stored) { c.messages = c.messages[:len(c.messages)-1] }, CutTail},
		"all cut off":         {func(c *stored) { c.messages = nil }, CutTail},
		"one put in again":    {func(c *stored) { c.messages = append(c.messages, *last(c)) }, Added},
	} {
		is := stored{heads: maps.Clone(whole.heads)}
		for _, m := range whole.messages {
			m.Data = slices.Clone(m.Data)
			is.messages = append(is.messages, m)
		}
		c.do(&is)
		report := is.check()
		if !slices.ContainsFunc(report.Faults, func(f Fault) bool { return f.Kind == c.want }) {
			t.Errorf("%s: %+v", name, report.Faults)
		}
	}
}

func FuzzParsedRecordEndsWithItsHash(f *testing.F) {
	r := Record{Version: version, Writer: "fd_1", Seq: 1, Prev: start(), Entry: full()}
	line, err := appendLine(nil, &r)
	if err != nil {
		f.Fatal(err)
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	f.Add(line)
	f.Add([]byte(hashField))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := parseLine(bytes.Clone(b))
		if err == nil && !bytes.HasSuffix(b, []byte(got.Hash+`"}`)) {
			t.Errorf("%q was read as %v", b, got)
		}
	})
}
