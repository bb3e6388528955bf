package warrant_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/warrant"
	"github.com/callyard/callyard/pkg/schema"
)

func claimsOf(call schema.CallID, approval schema.ApprovalID, deadline time.Time) *warrant.Claims {
	return &warrant.Claims{CallID: call, ApprovalID: approval, Deadline: deadline.UnixMilli()}
}

func TestWarrantIsUsedOnceUnderConcurrency(t *testing.T) {
	s := warrant.NewUsedWarrants(100)
	c := claimsOf("call", "approval", during.Add(time.Minute))
	var won, told atomic.Int64
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			switch refusal := s.Take(c, during); {
			case refusal == nil:
				won.Add(1)
			case refusal.Kind == schema.KindConflict:
				told.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || told.Load() != 99 {
		t.Errorf("%d ran, %d were told", won.Load(), told.Load())
	}
}

func TestNeitherACallNorAnApprovalIsUsedTwice(t *testing.T) {
	s := warrant.NewUsedWarrants(100)
	later := during.Add(time.Minute)
	if refusal := s.Take(claimsOf("call", "approval", later), during); refusal != nil {
		t.Fatal(refusal)
	}
	for _, c := range []*warrant.Claims{
		claimsOf("call", "approval", later), claimsOf("call", "other", later), claimsOf("other", "approval", later), claimsOf("call", "approval", later.Add(time.Hour)),
	} {
		if refusal := s.Take(c, during); refusal == nil || refusal.Kind != schema.KindConflict {
			t.Errorf("%+v: %v", c, refusal)
		}
	}
	if refusal := s.Take(claimsOf("other", "other", later), during); refusal != nil {
		t.Errorf("another call: %v", refusal)
	}
}

func TestReturnedWarrantCanBeUsedAgain(t *testing.T) {
	s := warrant.NewUsedWarrants(1)
	c := claimsOf("call", "approval", during.Add(time.Minute))
	for range 3 {
		if refusal := s.Take(c, during); refusal != nil {
			t.Fatal(refusal)
		}
		s.Return(c)
	}
}

func TestFullSpentMemoryRefusesWarrants(t *testing.T) {
	const most = 50
	s := warrant.NewUsedWarrants(most)
	ends := during.Add(time.Minute)
	for i := range most {
		if refusal := s.Take(claimsOf(schema.CallID(fmt.Sprint("call", i)), schema.ApprovalID(fmt.Sprint("approval", i)), ends), during); refusal != nil {
			t.Fatal(refusal)
		}
	}
	more := claimsOf("more", "more", ends.Add(time.Hour))
	refusal := s.Take(more, during.Add(time.Second))
	if refusal == nil || refusal.Kind != schema.KindUnavailable || !refusal.Retryable {
		t.Fatalf("full: %v", refusal)
	}
	// Expired warrants free memory.
	if refusal := s.Take(more, ends.Add(warrant.Leeway+time.Second)); refusal != nil {
		t.Errorf("with room again: %v", refusal)
	}
}

func TestClockSetBackDoesNotAllowReuse(t *testing.T) {
	s := warrant.NewUsedWarrants(100)
	c := claimsOf("call", "approval", during.Add(time.Minute))
	if refusal := s.Take(c, during); refusal != nil {
		t.Fatal(refusal)
	}
	// An hour later, the next call sweeps it.
	hour := during.Add(time.Hour)
	if refusal := s.Take(claimsOf("x", "x", hour.Add(time.Minute)), hour); refusal != nil {
		t.Fatal(refusal)
	}
	if refusal := s.Take(c, during); refusal == nil {
		t.Error("the clock was set back, and it ran again")
	}
}
