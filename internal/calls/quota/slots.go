package quota

import "time"

// slots counts the calls of one subject that are under way here, against what
// this front door may have of the limit. It is guarded by its subject.
type slots struct {
	used int
	peak int // the most that were used since the last renewal

	// held is how many slots are leased until till. While others are short and
	// have less than their part, fair is this front door's part of the limit:
	// nothing new is taken beyond it.
	held, fair int
	till       time.Time
	// denied is until when it is of no use to ask for more.
	denied time.Time
	asked  bool // more was wanted since the last renewal than there was
	others int  // those that other front doors hold, as of the last answer
	exact  bool // nothing is leased beyond the need
}

const (
	// deniedFor spares Redis from those that are refused anyway.
	deniedFor = 20 * time.Millisecond
	// spareOf is which part of a limit a front door may lease beyond its need, so
	// that most calls find a slot here.
	spareOf = 32
)

// look says whether a slot is free here, or else whether more may be leased.
func (s *slots) look(now time.Time, c class, most, doors int, remote bool) (ok, ask bool) {
	here := most
	if !remote {
		here = share(most, doors)
	}
	if c == bulk && s.used >= here-reserved(here) {
		return false, false
	}
	if !remote {
		return s.used < here, false
	}
	if now.Before(s.till) && s.used < min(s.held, s.fair) {
		return true, false
	}
	s.asked = true
	return false, !now.Before(s.denied)
}

func (s *slots) take() {
	s.used++
	s.peak = max(s.peak, s.used)
}

// want is how many slots to ask for, that many more than are used included.
func (s *slots) want(more, most int) int { return min(s.used+more+s.spare(most), most) }

func (s *slots) spare(most int) int {
	if s.exact {
		return 0
	}
	return most / spareOf
}

// renewal is how many slots to ask for at a renewal.
func (s *slots) renewal(most int) (used, want int) {
	need := max(s.used, s.peak)
	if s.asked {
		need++
	}
	if need > 0 {
		need += s.spare(most)
	}
	s.peak, s.asked = s.used, false
	return s.used, min(need, most)
}

// active says that Redis knows, or should know, of slots of this front door.
func (s *slots) active() bool { return s.used > 0 || s.peak > 0 || s.held > 0 || s.asked }

// lease is what Redis granted.
type lease struct{ granted, fair, others int }

// leased takes in what was granted of want slots, of most that there are. It counts
// from before it was asked for, so it has ended here before it is there.
func (s *slots) leased(l lease, want, most int, sent, now time.Time, ttl time.Duration) {
	s.held, s.fair, s.others = l.granted, l.fair, l.others
	s.till = sent.Add(ttl - ttl/leaseRenewals)
	// Who asked for nothing, because nothing was under way, was denied nothing.
	if s.used >= min(s.held, s.fair) && (s.held < want || s.used >= most) {
		s.denied = now.Add(deniedFor)
	} else {
		s.denied = time.Time{}
	}
}
