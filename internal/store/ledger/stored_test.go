package ledger

import (
	"errors"
	"testing"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

func TestARecordIsReplacedByOneWriterOfEachRevision(t *testing.T) {
	l, err := OpenRecords(t.Context(), bustest.Start(t).Connect(t, "test"), Options{MaxBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	// A head that would be headers of NATS if it were not wrapped.
	const head, body = "{}\r\nNats-Rollup: all\r\n\r\n", "body"
	if _, err := l.create(t.Context(), "appr_1", []byte(head), []byte(body)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.create(t.Context(), "appr_1", []byte("other"), nil); !errors.Is(err, bus.ErrConflict) {
		t.Errorf("a second opening: %v", err)
	}
	for _, from := range []bus.Source{bus.Either, bus.Leader} {
		r, err := l.get(t.Context(), "appr_1", from)
		if err != nil || string(r.Head) != head || string(r.Body) != body || r.Revision != 0 || r.Sequence != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	var last uint64
	for n := range 3 {
		if _, err := l.replace(t.Context(), "appr_1", []byte("late"), nil, last+100); !errors.Is(err, bus.ErrConflict) {
			t.Errorf("a revision that never was: %v", err)
		}
		was := last
		if last, err = l.replace(t.Context(), "appr_1", []byte{byte('a' + n)}, []byte("beside"), was); err != nil {
			t.Fatal(err)
		}
		if _, err := l.replace(t.Context(), "appr_1", []byte("late"), nil, was); !errors.Is(err, bus.ErrConflict) {
			t.Errorf("a revision that is over: %v", err)
		}
	}
	for _, from := range []bus.Source{bus.Either, bus.Leader} {
		r, err := l.get(t.Context(), "appr_1", from)
		if err != nil || string(r.Head) != "c" || string(r.Body) != "beside" || r.Revision != last {
			t.Errorf("%+v, %v", r, err)
		}
		if _, err := l.get(t.Context(), "appr_2", from); !errors.Is(err, bus.ErrNotFound) {
			t.Errorf("one that is not there: %v", err)
		}
	}
	if r, err := l.opening(t.Context(), "appr_1"); err != nil || string(r.Head) != head || string(r.Body) != body {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestAFullLedgerRefusesAndDropsNothing(t *testing.T) {
	l, err := OpenRecords(t.Context(), bustest.Start(t).Connect(t, "test"), Options{MaxBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.create(t.Context(), "appr_1", []byte("{}"), make([]byte, 40<<10)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.create(t.Context(), "appr_2", []byte("{}"), make([]byte, 40<<10)); !errors.Is(err, bus.ErrRefused) {
		t.Errorf("over the bound: %v", err)
	}
	if _, err := l.opening(t.Context(), "appr_1"); err != nil {
		t.Errorf("the first: %v", err)
	}
}
