package bus_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

type message struct {
	Name string `json:"name"`
	Who  string `json:"who"`
}

func TestOneOfConcurrentRowWritersWins(t *testing.T) {
	srv := bustest.Start(t)
	key := func(s *message) string { return bus.Token(s.Name) }
	open := func() *bus.Table[message] {
		table, err := bus.OpenTable(t.Context(), srv.Connect(t, "approver"), bus.TableSpec{Bucket: bus.BucketSlackMessages, What: "messages"}, key, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(table.Close)
		return table
	}
	tables := []*bus.Table[message]{open(), open()}
	odd := bus.Token("a.b *>") // a name that is not a plain token
	if _, _, err := tables[0].Fresh(t.Context(), odd); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("before it is there: %v", err)
	}
	race := func(write func(*bus.Table[message]) error) {
		t.Helper()
		var all sync.WaitGroup
		var won atomic.Int32
		for i := range 20 {
			all.Go(func() {
				switch err := write(tables[i%2]); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, bus.ErrConflict):
					t.Error(err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Errorf("%d won", won.Load())
		}
	}
	race(func(table *bus.Table[message]) error {
		_, err := table.Create(t.Context(), message{"a.b *>", "first"})
		return err
	})
	_, revision, err := tables[1].Fresh(t.Context(), odd)
	if err != nil {
		t.Fatal(err)
	}
	race(func(table *bus.Table[message]) error {
		_, err := table.Replace(t.Context(), message{"a.b *>", "second"}, revision)
		return err
	})
	if row, ok := tables[1].Get(odd); !ok || row.Who != "second" {
		got, _, err := tables[1].Fresh(t.Context(), odd)
		if err != nil || got.Who != "second" {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if err := tables[0].Delete(t.Context(), odd); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tables[1].Fresh(t.Context(), odd); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("after it was removed: %v", err)
	}
	if _, err := tables[1].Create(t.Context(), message{"a.b *>", "third"}); err != nil {
		t.Errorf("a row that was removed cannot be made again: %v", err)
	}
}

func TestNameIsTakenOnceAcrossProcesses(t *testing.T) {
	srv := bustest.Start(t)
	var won atomic.Int32
	var all sync.WaitGroup
	for i := range 4 {
		once, err := bus.OpenOnce(t.Context(), srv.Connect(t, "approver"), bus.TableSpec{Bucket: bus.BucketSlackOnce, What: "requests", Keep: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		for range 25 {
			all.Go(func() {
				switch err := once.Take(t.Context(), "the same"); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, bus.ErrConflict):
					t.Error(err)
				}
			})
		}
		if err := once.Take(t.Context(), fmt.Sprint("another ", i)); err != nil {
			t.Errorf("another name: %v", err)
		}
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d took it", won.Load())
	}
}

// TestRowWrittenAfterItsRemovalIsSeen has another process write the row before this one has noted that it
// was removed. The watch of this process is closed, so that the test decides what it delivers.
func TestRowWrittenAfterItsRemovalIsSeen(t *testing.T) {
	srv := bustest.Start(t)
	open := func() *bus.Table[message] {
		table, err := bus.OpenTable(t.Context(), srv.Connect(t, "approver"), bus.TableSpec{Bucket: bus.BucketSlackMessages, What: "messages"}, func(m *message) string { return m.Name }, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(table.Close)
		return table
	}
	here, there := open(), open()
	if _, err := here.Create(t.Context(), message{"row", "first"}); err != nil {
		t.Fatal(err)
	}
	here.Close()
	release := here.Hold()
	deleted := make(chan error, 1)
	go func() { deleted <- here.Delete(t.Context(), "row") }()
	for {
		if _, _, err := there.Fresh(t.Context(), "row"); errors.Is(err, bus.ErrNotFound) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := there.Put(t.Context(), message{"row", "second"}); err != nil {
		t.Fatal(err)
	}
	_, revision, err := there.Fresh(t.Context(), "row")
	if err != nil {
		t.Fatal(err)
	}
	here.See(message{"row", "second"}, revision)
	release()
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	if m, ok := here.Get("row"); !ok || m.Who != "second" {
		t.Errorf("the row is %v, %t", m, ok)
	}
}
