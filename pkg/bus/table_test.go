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

type seat struct {
	Name string `json:"name"`
	Who  string `json:"who"`
}

func TestOfAllWhoWriteARowOfATableOneWins(t *testing.T) {
	srv := bustest.Start(t)
	key := func(s *seat) string { return bus.TableKey(s.Name) }
	open := func() *bus.Table[seat] {
		table, err := bus.OpenTable(t.Context(), srv.Connect(t, "approver"), bus.TableSpec{Bucket: bus.BucketSlackMessages, What: "messages"}, key)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(table.Close)
		return table
	}
	tables := []*bus.Table[seat]{open(), open()}
	odd := bus.TableKey("a.b *>") // a name that is no token
	if _, _, err := tables[0].Fresh(t.Context(), odd); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("before it is there: %v", err)
	}
	race := func(write func(*bus.Table[seat]) error) {
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
	race(func(table *bus.Table[seat]) error {
		_, err := table.Create(t.Context(), seat{"a.b *>", "first"})
		return err
	})
	_, revision, err := tables[1].Fresh(t.Context(), odd)
	if err != nil {
		t.Fatal(err)
	}
	race(func(table *bus.Table[seat]) error {
		_, err := table.Replace(t.Context(), seat{"a.b *>", "second"}, revision)
		return err
	})
	if row, ok := tables[1].Known(odd); !ok || row.Who != "second" {
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
	if _, err := tables[1].Create(t.Context(), seat{"a.b *>", "third"}); err != nil {
		t.Errorf("a row that was removed cannot be made again: %v", err)
	}
}

func TestANameIsTakenOnceByWhoever(t *testing.T) {
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

func TestEventsOfTheApproverLieBesideTheWebhooksOfFrontDoors(t *testing.T) {
	c := bustest.Start(t).Connect(t, "approver")
	hooks, err := bus.OpenDeliveries(t.Context(), c, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	notices, err := bus.OpenNoticeDeliveries(t.Context(), c, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := notices.Create(t.Context(), "evt_1", []byte("state"), []byte("body")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := hooks.Get(t.Context(), "evt_1"); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("a front door sees it: %v", err)
	}
	seen := make(chan string, 1)
	stop, err := notices.Watch(t.Context(), func(id string, _ []byte, _ uint64) { seen <- id })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if id := <-seen; id != "evt_1" {
		t.Error(id)
	}
	if body, err := notices.Body(t.Context(), "evt_1"); err != nil || string(body) != "body" {
		t.Errorf("%s, %v", body, err)
	}
}
