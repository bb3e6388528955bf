package batch

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

func fill(s *readAhead, servers ...schema.ServerID) {
	for i, server := range servers {
		s.put(&journal.CallRecord{Index: uint64(i), Server: server, Arguments: []byte("{}")})
	}
}

// taken returns the runs in the order in which they leave the read-ahead buffer.
func taken(s *readAhead, run func(schema.ServerID) int) (runs []string) {
	for calls := s.take(run); calls != nil; calls = s.take(run) {
		line := string(calls[0].Server)
		for _, c := range calls {
			line += fmt.Sprint(" ", c.Index)
		}
		runs = append(runs, line)
	}
	return runs
}

func TestServersTakeTurnsAndEachKeepsItsOrder(t *testing.T) {
	s := newReadAhead()
	fill(s, "a", "b", "a", "slow", "a", "b", "a", "slow", "a")
	run := func(server schema.ServerID) int {
		if server == "slow" {
			return 1
		}
		return 3
	}
	want := []string{"a 0 2 4", "b 1 5", "slow 3", "a 6 8", "slow 7"}
	if diff := cmp.Diff(want, taken(s, run)); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if s.calls != 0 || s.bytes != 0 || len(s.queues) != 0 || len(s.turn) != 0 {
		t.Errorf("an empty buffer has %d calls, %d bytes, %d queues, %d turns", s.calls, s.bytes, len(s.queues), len(s.turn))
	}
}

func TestServerWithZeroRunLengthGetsOneCall(t *testing.T) {
	s := newReadAhead()
	fill(s, "a", "a")
	if diff := cmp.Diff([]string{"a 0", "a 1"}, taken(s, func(schema.ServerID) int { return 0 })); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

func TestReadAheadBufferIsShortUntilItHoldsARun(t *testing.T) {
	run := func(schema.ServerID) int { return 3 }
	s := newReadAhead()
	if !s.short(run) {
		t.Error("an empty buffer is not short")
	}
	if fill(s, "a", "b", "b", "b", "a"); !s.short(run) {
		t.Error("the first server has two calls of three, and the buffer is not short")
	}
	if fill(s, "a"); s.short(run) {
		t.Error("the first server has a run, and the buffer is short")
	}
	s = newReadAhead()
	for i := range aheadCalls {
		if !s.short(run) {
			t.Fatalf("it is full with %d calls", i)
		}
		fill(s, schema.ServerID(fmt.Sprint("server", i)))
	}
	if s.short(run) {
		t.Errorf("%d calls are too few", s.calls)
	}
	s = newReadAhead()
	s.put(&journal.CallRecord{Server: "large", Arguments: make([]byte, aheadBytes)})
	if s.short(run) {
		t.Error("a call of all its bytes is not enough")
	}
}
