package ledger_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// hold stores an approval of the requester's with that many bytes of arguments.
func hold(t *testing.T, l *ledger.Ledger, name string, size int) (*ledger.Approval, error) {
	t.Helper()
	a := question()
	a.Binding.Requester.Name = name
	_, err := l.Create(t.Context(), a, []byte(`"`+strings.Repeat("x", size-2)+`"`))
	return a, err
}

// refused checks that a call was refused with the kind, and with a time to retry.
func refused(t *testing.T, what string, err error, kind schema.Kind) {
	t.Helper()
	if e := schema.AsError(err); e == nil || e.Kind != kind || !e.Retryable || e.RetryAfter < time.Second {
		t.Errorf("%s: %v", what, err)
	}
}

func TestRequesterMayHoldAQuarterOfTheLimit(t *testing.T) {
	l := open(t, bustest.Start(t).Connect(t, "test"), ledger.Options{MaxOpen: 100, MaxOpenBytes: 4000})
	first, err := hold(t, l, "ann", 900)
	if err != nil {
		t.Fatal(err)
	}
	_, err = hold(t, l, "ann", 101)
	refused(t, "more bytes than ann may", err, schema.KindQuota)
	if _, err := l.Change(t.Context(), schema.DefaultTenant, first.ID, to(ledger.Canceled)); err != nil {
		t.Fatal(err)
	}
	for n := range 25 {
		if _, err := hold(t, l, "ann", 40); err != nil {
			t.Fatalf("call %d, after the large one was taken back: %v", n, err)
		}
	}
	_, err = hold(t, l, "ann", 2)
	refused(t, "more calls than ann may", err, schema.KindQuota)
	for _, name := range []string{"ben", "cat", "dan"} {
		if _, err := hold(t, l, name, 990); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if calls, bytes := l.Held(); calls != 28 || bytes != 25*40+3*990 {
		t.Errorf("%d calls with %d bytes are held", calls, bytes)
	}
	_, err = hold(t, l, "eve", 31)
	refused(t, "more bytes than all may", err, schema.KindUnavailable)
}

func TestConcurrentHoldsAreCountedOnce(t *testing.T) {
	s := bustest.Start(t)
	l := open(t, s.Connect(t, "a"), ledger.Options{MaxOpen: 100})
	var held, over atomic.Int64
	var all sync.WaitGroup
	for range 60 {
		all.Go(func() {
			switch _, err := hold(t, l, "ann", 2); {
			case err == nil:
				held.Add(1)
			case schema.KindOf(err) == schema.KindQuota:
				over.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if held.Load() != 25 || over.Load() != 35 {
		t.Errorf("%d held, %d refused", held.Load(), over.Load())
	}
	again := open(t, s.Connect(t, "b"), ledger.Options{MaxOpen: 100})
	_, err := hold(t, again, "ann", 2)
	refused(t, "one more, after a restart", err, schema.KindQuota)
}
