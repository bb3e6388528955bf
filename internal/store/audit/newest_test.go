package audit

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestNewestReturnsEveryRecordAcrossPages(t *testing.T) {
	l := open(t, bustest.Start(t).Connect(t, "test"), Options{})
	for n := range 300 {
		e := Entry{Kind: Ran, CallID: schema.CallID(fmt.Sprint(n)), Server: schema.ServerID(fmt.Sprint("s", n%3)), Operation: fmt.Sprint("op", n%2)}
		if n%4 == 0 {
			e.Tenant = "red"
		}
		add(t, l, e)
		if n%7 != 0 { // messages of several records, and more than one window of messages
			sync1(t, l)
		}
	}
	sync1(t, l)
	newest := func(of schema.Tenants, f Filter) (ids []int) {
		for cursor, page := "", 0; ; page++ {
			got, next, err := l.Newest(t.Context(), of, f, cursor)
			if err != nil || len(got) > cmp.Or(f.Limit, 100) || page > 301 {
				t.Fatalf("page %d: %d records, %v", page, len(got), err)
			}
			for _, r := range got {
				n, _ := strconv.Atoi(string(r.CallID))
				ids = append(ids, n)
			}
			if cursor = next; next == "" {
				return ids
			}
		}
	}
	want := make([]int, 300)
	for i := range want {
		want[i] = 299 - i
	}
	for _, limit := range []int{7, 1000} {
		if ids := newest(schema.AllTenants(), Filter{Limit: limit}); !slices.Equal(ids, want) {
			t.Errorf("limit %d: %d records, %v", limit, len(ids), ids[:min(len(ids), 20)])
		}
	}
	for name, c := range map[string]struct {
		f    Filter
		want int
	}{
		"a server": {Filter{Server: "s1"}, 100}, "an operation": {Filter{Operation: "op1"}, 150},
		"none": {Filter{Kinds: []Kind{Held}}, 0}, "from now on": {Filter{Since: time.Now().Add(time.Hour)}, 0}, "before": {Filter{Until: time.Now().Add(-time.Hour)}, 0}, "around": {Filter{Since: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)}, 300},
	} {
		if ids := newest(schema.AllTenants(), c.f); len(ids) != c.want {
			t.Errorf("%s: %d records", name, len(ids))
		}
	}
	for of, want := range map[schema.Tenants]int{{}: 0, schema.OnlyTenant("red"): 75, schema.OnlyTenant(schema.DefaultTenant): 225, schema.OnlyTenant("blue"): 0} {
		read, _, err := l.Read(t.Context(), of, Filter{Limit: 1000}, "")
		since := 0
		again := l.Since(t.Context(), of, time.Time{}, func(*Record) bool { since++; return true })
		if n := len(newest(of, Filter{})); err != nil || again != nil || n != want || len(read) != want || since != want {
			t.Errorf("%v: Newest %d, Read %d, Since %d; want %d; %v, %v", of, n, len(read), since, want, err, again)
		}
	}
	for _, cursor := range []string{"x", "1", "1-x", "-1-0", "1--1"} {
		if _, _, err := l.Newest(t.Context(), schema.AllTenants(), Filter{}, cursor); schema.KindOf(err) != schema.KindInvalidRequest {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}

func TestVerifierResumesAndReportsFaults(t *testing.T) {
	l := open(t, bustest.Start(t).Connect(t, "test"), Options{HeadEvery: time.Millisecond})
	for range 20 {
		add(t, l, Entry{Kind: Ran})
		sync1(t, l)
	}
	v := NewVerifier(l.Reader)
	look := func(within time.Duration) *Verified {
		t.Helper()
		got, err := v.Verify(t.Context(), within)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := look(0); got.Complete || got.Records != 0 || !got.OK() {
		t.Errorf("without time: %+v", got)
	}
	began := look(time.Minute)
	if !began.Complete || !began.Heads || began.Records != 20 || began.Writers != 1 || !began.OK() {
		t.Errorf("%+v", began)
	}
	add(t, l, Entry{Kind: Ran})
	sync1(t, l)
	if got := look(time.Minute); got.Records != 21 || !got.OK() || !got.Began.Equal(began.Began) {
		t.Errorf("continued: %+v", got)
	}
	// Insert a chain, and change a letter of one of its records.
	line, err := appendLine(nil, &Record{Version: version, Writer: "evil", Seq: 1, Prev: start(), Entry: Entry{Kind: Decided, By: "bob"}})
	if err != nil {
		t.Fatal(err)
	}
	for n, data := range [][]byte{line, bytes.Replace(line, []byte("bob"), []byte("eve"), 1)} {
		last, err := l.store.last(t.Context(), "evil")
		if n > 0 && err != nil {
			t.Fatal(err)
		}
		if _, err := l.store.append(t.Context(), "evil", data, last.Sequence); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // earlier faults remain, and are not counted again
		got := look(time.Minute)
		kinds := make([]FaultKind, 0, 2)
		for _, f := range got.Faults {
			kinds = append(kinds, f.Kind)
		}
		if !slices.Equal(kinds, []FaultKind{Changed, Added}) || got.Count != 2 {
			t.Errorf("%+v", got.Faults)
		}
	}
	whole := verified(t, l)
	if got := look(time.Minute); got.Count != whole.Count || got.Records != whole.Records {
		t.Errorf("it finds %+v, and verify %+v", got.Report, whole)
	}
}
