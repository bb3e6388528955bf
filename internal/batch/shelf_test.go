package batch

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/ledger/journal"
)

func fill(s *shelf, servers ...string) {
	for i, server := range servers {
		s.put(&journal.CallRecord{Index: uint64(i), Server: server, Arguments: []byte("{}")})
	}
}

// taken says in which order the calls leave the shelf, a run in each line.
func taken(s *shelf, run func(string) int) (runs []string) {
	for calls := s.take(run); calls != nil; calls = s.take(run) {
		line := calls[0].Server
		for _, c := range calls {
			line += fmt.Sprint(" ", c.Index)
		}
		runs = append(runs, line)
	}
	return runs
}

func TestServersTakeTurnsAndEachKeepsItsOrder(t *testing.T) {
	s := newShelf()
	fill(s, "a", "b", "a", "slow", "a", "b", "a", "slow", "a")
	run := func(server string) int {
		if server == "slow" {
			return 1
		}
		return 3
	}
	want := []string{"a 0 2 4", "b 1 5", "slow 3", "a 6 8", "slow 7"}
	if diff := cmp.Diff(want, taken(s, run)); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if s.calls != 0 || s.bytes != 0 || len(s.piles) != 0 || len(s.turn) != 0 {
		t.Errorf("an empty shelf has %d calls, %d bytes, %d piles, %d turns", s.calls, s.bytes, len(s.piles), len(s.turn))
	}
}

func TestAServerThatIsGivenNothingInARowIsGivenOne(t *testing.T) {
	s := newShelf()
	fill(s, "a", "a")
	if diff := cmp.Diff([]string{"a 0", "a 1"}, taken(s, func(string) int { return 0 })); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

func TestAShelfIsShortUntilARunIsThereOrItIsFull(t *testing.T) {
	run := func(string) int { return 3 }
	s := newShelf()
	if !s.short(run) {
		t.Error("an empty shelf is not short")
	}
	if fill(s, "a", "b", "b", "b", "a"); !s.short(run) {
		t.Error("the first server has two calls of three, and the shelf is not short")
	}
	if fill(s, "a"); s.short(run) {
		t.Error("the first server has a run, and the shelf is short")
	}
	s = newShelf()
	for i := range shelfCalls {
		if !s.short(run) {
			t.Fatalf("it is full with %d calls", i)
		}
		fill(s, fmt.Sprint("server", i))
	}
	if s.short(run) {
		t.Errorf("%d calls are too few", s.calls)
	}
	s = newShelf()
	s.put(&journal.CallRecord{Server: "large", Arguments: make([]byte, shelfBytes)})
	if s.short(run) {
		t.Error("a call of all its bytes is not enough")
	}
}
