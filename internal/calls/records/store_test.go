package records

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

func TestMessagesOfASlotAreReadInTheOrderOfWriting(t *testing.T) {
	e, err := openStore(t.Context(), bustest.Start(t).Connect(t, "test"))
	if err != nil {
		t.Fatal(err)
	}
	// More than one answer of the server holds, in bytes and in messages.
	const count = 1300
	large := bytes.Repeat([]byte("x"), 4<<10)
	for i := range count {
		if err := e.append(t.Context(), 7, append([]byte{byte(i), byte(i >> 8)}, large...)); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 {
			if err := e.append(t.Context(), 8, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	var sequences []uint64
	read := func(from uint64, most int) (got []int) {
		sequences = nil
		n, err := e.read(t.Context(), 7, from, most, func(s uint64, data []byte) {
			got = append(got, int(data[0])|int(data[1])<<8)
			sequences = append(sequences, s)
		})
		if err != nil || n != len(got) {
			t.Fatalf("%d read, %d seen, %v", n, len(got), err)
		}
		return got
	}
	var want []int
	for i := range count {
		want = append(want, i)
	}
	if diff := cmp.Diff(want, read(0, 0)); diff != "" {
		t.Fatal(diff)
	}
	all := sequences
	if got := read(all[500], 700); !cmp.Equal(got, want[500:1200]) {
		t.Errorf("from the middle: %d", len(got))
	}
	if got := read(all[count-1]+1, 0); len(got) != 0 {
		t.Errorf("after the end: %d", len(got))
	}
	if n, err := e.read(t.Context(), 9, 0, 0, func(uint64, []byte) { t.Error("a message of an empty slot") }); n != 0 || err != nil {
		t.Errorf("an empty slot: %d %v", n, err)
	}
	if err := e.append(t.Context(), 7, make([]byte, e.maxBody()+2<<10)); !errors.Is(err, bus.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

func TestSlotsAreFoundBackwardsAcrossGaps(t *testing.T) {
	e, err := openStore(t.Context(), bustest.Start(t).Connect(t, "test"))
	if err != nil {
		t.Fatal(err)
	}
	now := slotOf(time.Now())
	want := []int64{now, now - 1, now - 5, now - 361, now - 40_000, 3}
	for _, slot := range want {
		if err := e.append(t.Context(), slot, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	var got []int64
	for before := now + 1; ; before = got[len(got)-1] {
		slots, err := e.slots(t.Context(), before)
		if err != nil {
			t.Fatal(err)
		}
		if len(slots) == 0 {
			break
		}
		got = append(got, slots...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
