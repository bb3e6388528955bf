package journal

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Whatever two writers store and readers read, what is read here is what follows in the
// log, without a gap; and what all have read is forgotten.
func TestAReaderSeesTheLogInOrderWhileItIsWritten(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		r := &recent{}
		var log []bus.Message
		subscriptions := []*subscription{r.join("j", LogResults), r.join("j", LogResults)}
		at := []uint64{1, 1}
		sequence, newest, found := uint64(0), uint64(0), 0
		for range 200 {
			switch n := rng.IntN(10); {
			case n < 5:
				before := uint64(0)
				if len(log) > 0 {
					before = log[len(log)-1].Sequence
				}
				sequence += 1 + rng.Uint64N(3) // other logs are in the stream too
				m := bus.Message{Sequence: sequence, Data: fmt.Append(nil, sequence)}
				log = append(log, m)
				if n > 0 { // otherwise another process stored it
					r.put("j", LogResults, before, sequence, m.Data)
					newest = sequence
				}
			default:
				i := n % 2
				page, missed := subscriptions[i].page(at[i])
				want := log
				for len(want) > 0 && want[0].Sequence < at[i] {
					want = want[1:]
				}
				if len(page) == 0 { // it asks NATS
					if here := newest >= at[i]; here != missed {
						t.Fatalf("seed %d: after %d something else was stored here: %t, and it says %t", seed, at[i], here, missed)
					}
					page = want
				} else {
					found += len(page)
				}
				if len(page) > len(want) {
					t.Fatalf("seed %d: %d messages are read after %d, where %d are stored", seed, len(page), at[i], len(want))
				}
				for k, m := range page {
					if m.Sequence != want[k].Sequence || string(m.Data) != string(want[k].Data) {
						t.Fatalf("seed %d: after %d message %d is read, which is not the next", seed, at[i], m.Sequence)
					}
					at[i] = m.Sequence + 1
				}
			}
		}
		if found == 0 {
			t.Fatalf("seed %d: nothing was read from here", seed)
		}
		for i, s := range subscriptions {
			s.page(at[i])
			s.leave()
			s.leave()
			if page, missed := s.page(1); page != nil || !missed {
				t.Fatalf("who left reads %d messages", len(page))
			}
		}
		if len(r.logs) != 0 || r.bytes != 0 {
			t.Fatalf("seed %d: %d logs and %d bytes are left", seed, len(r.logs), r.bytes)
		}
	}
}

func TestReadAheadIsBoundedAndKeptOnlyForReaders(t *testing.T) {
	r := &recent{}
	r.put("nobody", LogCalls, 0, 1, []byte("x"))
	if r.bytes != 0 {
		t.Error("what nobody reads is kept")
	}
	slow := r.join("slow", LogCalls)
	big := make([]byte, recentOne/4)
	for i := range uint64(10) {
		r.put("slow", LogCalls, i, i+1, big)
	}
	if r.bytes != recentOne {
		t.Errorf("%d bytes are kept of one log", r.bytes)
	}
	if page, missed := slow.page(1); page != nil || !missed {
		t.Errorf("after a gap %d messages are read", len(page))
	}
	if page, _ := slow.page(7); len(page) != 4 || page[0].Sequence != 7 {
		t.Errorf("%d messages are read", len(page))
	}
	var others []*subscription
	for i := range uint64(10) {
		id := schema.BatchID(fmt.Sprint("other-", i))
		others = append(others, r.join(id, LogCalls))
		for n := range uint64(4) {
			r.put(id, LogCalls, n, n+1, big)
		}
	}
	if r.bytes > recentAll {
		t.Errorf("%d bytes are kept of all", r.bytes)
	}
	last := others[len(others)-1]
	select {
	case <-last.wake:
	default:
		t.Error("where there is no room the reader is not told")
	}
	if page, missed := last.page(1); page != nil || !missed {
		t.Errorf("%d messages are kept without room", len(page))
	}
	last.appended(4) // stored here, if not kept
	select {
	case <-last.wake:
		t.Error("it is told twice")
	default:
	}
	if last.appended(5); !last.elsewhere.Load() {
		t.Error("it does not know of what others stored")
	}
}
