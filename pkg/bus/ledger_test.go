package bus_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

func TestARecordIsReplacedByOneWriterOfEachRevision(t *testing.T) {
	l, err := bus.OpenLedger(t.Context(), bustest.Start(t).Connect(t, "test"), bus.LedgerOptions{MaxAge: time.Hour, MaxBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	// A head that would be headers of NATS if it were not wrapped.
	const head, body = "{}\r\nNats-Rollup: all\r\n\r\n", "body"
	if _, err := l.Create(t.Context(), "appr_1", []byte(head), []byte(body)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Create(t.Context(), "appr_1", []byte("other"), nil); !errors.Is(err, bus.ErrConflict) {
		t.Errorf("a second opening: %v", err)
	}
	for _, fresh := range []bool{false, true} {
		r, err := l.Get(t.Context(), "appr_1", fresh)
		if err != nil || string(r.Head) != head || string(r.Body) != body || r.Revision != 0 || r.Sequence != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	var last uint64
	for n := range 3 {
		if _, err := l.Replace(t.Context(), "appr_1", []byte("late"), nil, last+100); !errors.Is(err, bus.ErrConflict) {
			t.Errorf("a revision that never was: %v", err)
		}
		was := last
		if last, err = l.Replace(t.Context(), "appr_1", []byte{byte('a' + n)}, []byte("beside"), was); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Replace(t.Context(), "appr_1", []byte("late"), nil, was); !errors.Is(err, bus.ErrConflict) {
			t.Errorf("a revision that is over: %v", err)
		}
	}
	for _, fresh := range []bool{false, true} {
		r, err := l.Get(t.Context(), "appr_1", fresh)
		if err != nil || string(r.Head) != "c" || string(r.Body) != "beside" || r.Revision != last {
			t.Errorf("%+v, %v", r, err)
		}
		if _, err := l.Get(t.Context(), "appr_2", fresh); !errors.Is(err, bus.ErrNotFound) {
			t.Errorf("one that is not there: %v", err)
		}
	}
	if r, err := l.Opening(t.Context(), "appr_1"); err != nil || string(r.Head) != head || string(r.Body) != body {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestAFullLedgerRefusesAndDropsNothing(t *testing.T) {
	l, err := bus.OpenLedger(t.Context(), bustest.Start(t).Connect(t, "test"), bus.LedgerOptions{MaxBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Create(t.Context(), "appr_1", []byte("{}"), make([]byte, 40<<10)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Create(t.Context(), "appr_2", []byte("{}"), make([]byte, 40<<10)); !errors.Is(err, bus.ErrRefused) {
		t.Errorf("over the bound: %v", err)
	}
	if _, err := l.Opening(t.Context(), "appr_1"); err != nil {
		t.Errorf("the first: %v", err)
	}
}

func TestAStreamThatCannotKeepThePromisesIsRefused(t *testing.T) {
	s := bustest.Start(t)
	nc, err := nats.Connect(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "callyard_ledger", Subjects: []string{"callyard.v1.approval.>"}, MaxMsgsPerSubject: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "callyard_audit", Subjects: []string{"callyard.v1.audit.>"}, MaxMsgsPerSubject: -1, Storage: jetstream.MemoryStorage}); err != nil {
		t.Fatal(err)
	}
	c := s.Connect(t, "test")
	if _, err := bus.OpenLedger(t.Context(), c, bus.LedgerOptions{}); err == nil || !strings.Contains(err.Error(), "must keep 1") {
		t.Errorf("ledger: %v", err)
	}
	if _, err := bus.OpenAudit(t.Context(), c, 0); err == nil || !strings.Contains(err.Error(), "file storage") {
		t.Errorf("audit: %v", err)
	}
}
