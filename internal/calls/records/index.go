package records

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/callyard/callyard/pkg/schema"
)

const (
	// mostParts limits the parts in all indexes, of 64 bytes each.
	mostParts = 64 << 10
	// indexFrom is the minimum number of messages at which a slot gets an index. A smaller slot
	// is read as a whole each time, with one request.
	indexFrom = 16
)

// indexes caches, for large slots that were read recently, the range of keys in each message.
// Messages never change, so such a slot is read to its end once; after that, only new messages
// and the needed ones are read.
type indexes struct {
	mu    sync.Mutex
	slots map[int64]*index
	clock uint64
}

// index holds the key ranges of the messages of one slot.
type index struct {
	slot int64
	used uint64 // clock value of the last use; guarded by indexes.mu
	size int    // number of parts at the last put; guarded by indexes.mu

	mu    sync.Mutex
	last  uint64 // the sequence of the last indexed message
	parts []part // sorted by sequence
}

// part is the index entry of one message.
type part struct {
	sequence    uint64
	first, last key // range of its record keys
	count       int
}

// get returns the index of a slot, or nil if there is none.
func (s *indexes) get(slot int64) *index {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.slots[slot]
	if x != nil {
		s.clock++
		x.used = s.clock
	}
	return x
}

// put stores an index with size parts, and evicts the least recently used indexes if there are
// too many parts.
func (s *indexes) put(x *index, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots == nil {
		s.slots = map[int64]*index{}
	}
	s.clock++
	x.used, x.size = s.clock, size
	s.slots[x.slot] = x
	total := 0
	for _, one := range s.slots {
		total += one.size
	}
	if total <= mostParts {
		return
	}
	all := make([]*index, 0, len(s.slots))
	for _, one := range s.slots {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b *index) int { return cmp.Compare(a.used, b.used) })
	for _, one := range all[:len(all)-1] { // the last is x
		if total <= mostParts/2 {
			return
		}
		delete(s.slots, one.slot)
		total -= one.size
	}
}

// drop removes an index.
func (s *indexes) drop(x *index) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots[x.slot] == x {
		delete(s.slots, x.slot)
	}
}

// add extends the part by the key of a record.
func (p *part) add(k key) {
	if k.less(p.first) {
		p.first = k
	}
	p.last = laterKey(p.last, k)
	p.count++
}

// extend adds the parts of all messages of the slot with sequences in (after, until], if the index
// is complete up to after. It returns the total number of parts, or 0 if it is not complete.
func (x *index) extend(after, until uint64, parts []part) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.last < after {
		return 0
	}
	for _, p := range parts {
		if p.sequence > x.last {
			x.parts = append(x.parts, p)
		}
	}
	x.last = max(x.last, until)
	return len(x.parts)
}

// reach returns the sequence of the last indexed message, and the number of parts.
func (x *index) reach() (last uint64, parts int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.last, len(x.parts)
}

// found is called with a record and the sequence of its message.
type found func(sequence uint64, k key, r *Record)

// scan calls f with the wanted records of a slot that have a key in [from, before). It may skip
// the oldest of them, but reads at least atLeast calls if there are that many. No record with a key
// of floor or above is missing. It also returns the number of messages that it read.
func (r *Recorder) scan(ctx context.Context, slot int64, from, before key, atLeast int, want func(key) bool, f found) (floor key, read int, err error) {
	x := r.indexes.get(slot)
	if x == nil {
		x = &index{slot: slot}
		read, err = r.follow(ctx, x, want, f)
		if read >= indexFrom {
			r.indexes.put(x, read)
		}
		return key{}, read, err
	}
	if read, err = r.followNew(ctx, x); err != nil {
		return key{}, read, err
	}
	parts, floor, all := x.newest(from, before, atLeast)
	if read > 0 {
		r.indexes.put(x, all)
	}
	n, err := r.read(ctx, x, parts, func(k key) bool { return !k.less(floor) && want(k) }, f)
	return floor, read + n, err
}

// followNew indexes the messages that were added to a slot since it was last indexed. Usually there
// are none, so it first requests one message: for that the server does not count those that
// follow, which takes longer than finding the message.
func (r *Recorder) followNew(ctx context.Context, x *index) (int, error) {
	x.mu.Lock()
	last := x.last
	x.mu.Unlock()
	if n, err := r.store.read(ctx, x.slot, last+1, 1, func(uint64, []byte) {}); n == 0 || err != nil {
		return 0, readError(err)
	}
	return r.follow(ctx, x, func(key) bool { return false }, nil)
}

// follow indexes the messages that were added to a slot since it was last indexed, and calls f with
// their wanted records. It returns the number of messages.
func (r *Recorder) follow(ctx context.Context, x *index, want func(key) bool, f found) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	broken := error(nil)
	n, err := r.store.read(ctx, x.slot, x.last+1, 0, func(sequence uint64, data []byte) {
		p := part{sequence: sequence, first: lastKey()}
		err := unpack(data, func(k key) bool {
			p.add(k)
			return want(k)
		}, func(k key, one *Record) { f(sequence, k, one) })
		if x.last = sequence; err != nil {
			broken = err
		}
		x.parts = append(x.parts, p) // also without records, because run counts the parts
	})
	if broken != nil {
		r.log.Warn("a message of call records cannot be decoded to its end; the rest of it is skipped", "slot", x.slot, "error", broken)
	}
	return n, readError(err)
}

func readError(err error) error {
	if err == nil {
		return nil
	}
	return schema.Errorf(schema.KindUnavailable, "The call records cannot be read at the moment; check that NATS is running. (%w)", err)
}

// newest returns the messages with the highest keys in [from, before), with at least atLeast
// records if there are that many. It also returns the key from which on nothing is missing, and the
// total number of messages.
func (x *index) newest(from, before key, atLeast int) (parts []part, floor key, all int) {
	last := before
	last.decrement() // from is less
	x.mu.Lock()
	for _, p := range x.parts {
		if !p.last.less(from) && !last.less(p.first) {
			if last.less(p.last) {
				p.last = last
			}
			parts = append(parts, p)
		}
	}
	all = len(x.parts)
	x.mu.Unlock()
	slices.SortFunc(parts, func(a, b part) int { return compareKeys(b.last, a.last) })
	count := 0
	for i, p := range parts {
		if count >= atLeast && p.last != parts[i-1].last {
			// No later part has a higher key than this one.
			floor = p.last
			floor.increment()
			parts = parts[:i]
			break
		}
		count += p.count
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.sequence, b.sequence) })
	return parts, floor, all
}

// read calls f with the wanted records of some messages of a slot. It returns the number of
// messages that it read.
func (r *Recorder) read(ctx context.Context, x *index, parts []part, want func(key) bool, f found) (int, error) {
	total := 0
	for len(parts) > 0 {
		run := x.run(parts)
		n, err := r.store.read(ctx, x.slot, parts[0].sequence, run, func(sequence uint64, data []byte) {
			_ = unpack(data, want, func(k key, one *Record) { f(sequence, k, one) }) // errors were logged when the message was indexed
		})
		if total += n; err != nil {
			return total, readError(err)
		}
		parts = parts[run:]
	}
	return total, nil
}

// run returns the number of parts, from the first, that are consecutive in the slot.
func (x *index) run(parts []part) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	at, _ := slices.BinarySearchFunc(x.parts, parts[0].sequence, func(p part, s uint64) int { return cmp.Compare(p.sequence, s) })
	n := 1
	for n < len(parts) && at+n < len(x.parts) && x.parts[at+n].sequence == parts[n].sequence {
		n++
	}
	return n
}
