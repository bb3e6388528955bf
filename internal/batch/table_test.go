package batch

import (
	"testing"

	"github.com/callyard/callyard/internal/store/journal"
)

func callAt(index uint64) *item { return &item{rec: &journal.CallRecord{Index: index}} }

// noneEnded is for tables whose calls have no results.
func noneEnded(uint64) bool { return false }

func always() bool { return true }

func TestEndedHeldOrCanceledCallDoesNotStart(t *testing.T) {
	table := newCallTable(func(index uint64) bool { return index == 1 })
	table.park(callAt(2))
	if _, unread := table.cancel(3, always); !unread {
		t.Fatal("a call of which nothing is known is not to be canceled unread")
	}
	for index, begins := range map[uint64]bool{1: false, 2: false, 3: false, 4: true} {
		if got := table.enlist(callAt(index)); got != begins {
			t.Errorf("call %d begins: %t", index, got)
		}
	}
	table.canceled(3) // its result could not be stored
	if !table.enlist(callAt(3)) {
		t.Error("a call whose cancellation failed does not begin")
	}
}

func TestOnlyUnknownCallIsCanceledUnread(t *testing.T) {
	table := newCallTable(func(index uint64) bool { return index == 1 })
	running := callAt(2)
	table.enlist(running)
	table.park(callAt(3))
	table.cancel(4, always)
	for index := range uint64(5) {
		it, unread := table.cancel(index, always)
		if unread != (index == 0) || (it == running) != (index == 2) {
			t.Errorf("call %d: unread %t, under way %t", index, unread, it != nil)
		}
	}
	if _, unread := table.cancel(5, func() bool { return false }); unread {
		t.Error("a call that left under an earlier owner is canceled unread")
	}
}

func TestHeldCallIsDroppedOnce(t *testing.T) {
	table, it := newCallTable(noneEnded), callAt(1)
	table.park(it)
	if !it.waits.Load() || table.unsettled() != 1 || table.find(1) != it {
		t.Error("a held call is not found")
	}
	if !table.drop(it) || table.drop(it) {
		t.Error("a held call is not dropped, or twice")
	}
	select {
	case <-table.changed:
	default:
		t.Error("nobody is told")
	}
	if it.waits.Load() || table.unsettled() != 0 || table.find(1) != nil {
		t.Error("a dropped call is still held")
	}
}

// The finisher of a canceled batch treats a call that is not held as one that never ran or whose
// result is stored.
func TestACallCountsAsHeldUntilItsEndIsStored(t *testing.T) {
	table, it := newCallTable(noneEnded), callAt(1)
	table.park(it)
	if !table.claimEnd(it) || table.claimEnd(it) {
		t.Error("the end of a held call is nobody's to store, or two people's")
	}
	if table.drop(it) || table.heldCall(1) != it || table.unsettled() != 1 {
		t.Error("a call whose end is being stored is not held any more")
	}
	if it.waits.Load() {
		t.Error("a call that has ended is said to wait for an approval")
	}
	table.endStored(it)
	if table.heldCall(1) != nil || table.unsettled() != 0 || table.claimEnd(it) {
		t.Error("a call whose end is stored is still held")
	}
	select {
	case <-table.changed:
	default:
		t.Error("nobody is told")
	}
}

func TestOutcomeIsCopiedOnlyWhileCallIsHeldAndTableOpen(t *testing.T) {
	table, it := newCallTable(noneEnded), callAt(1)
	begun := 0
	begin := func() { begun++ }
	table.whileHeld(it, begin)
	table.park(it)
	table.whileHeld(it, begin)
	table.whileHeld(callAt(1), begin) // an earlier item with the same index
	table.close()
	table.whileHeld(it, begin)
	if begun != 1 {
		t.Errorf("it was begun %d times", begun)
	}
}

func TestEndedCallKeepsItsNextRunInTheTable(t *testing.T) {
	table, first, second := newCallTable(noneEnded), callAt(1), callAt(1)
	table.enlist(first)
	first.over = make(chan struct{})
	close(first.over)    // its result is stored
	table.enlist(second) // another run of the same call was requested
	table.delist(first)
	if table.find(1) != second {
		t.Error("the second run is not found")
	}
}
