package quota

import "time"

// slots counts the calls in flight of one subject in this process, against this front door's part
// of the limit. It is guarded by subject.mu.
type slots struct {
	used int
	peak int // maximum of used since the last renewal

	// held is the number of slots leased until till. fair is this front door's share of the
	// limit while other front doors are short and have less than their share: no new slots are
	// taken beyond it.
	held, fair int
	till       time.Time
	// denied is the time until which another request would be useless.
	denied time.Time
	asked  bool // a slot was requested in vain since the last renewal
	others int  // slots held by other front doors, as of the last response
	exact  bool // lease no spare slots
}

const (
	// deniedFor is the pause after a denied request, to limit the load on Redis.
	deniedFor = 20 * time.Millisecond
	// spareOf is the fraction (1/spareOf) of a limit that a front door may lease beyond its need,
	// so that most calls find a slot in memory.
	spareOf = 32
)

// look reports whether a slot is free here, or else whether to ask Redis for more.
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

// want returns the number of slots to request if more slots than used are needed.
func (s *slots) want(more, most int) int { return min(s.used+more+s.spare(most), most) }

func (s *slots) spare(most int) int {
	if s.exact {
		return 0
	}
	return most / spareOf
}

// renewal returns the used slots, and the number of slots to request at a renewal, with more for calls that
// asked in vain.
func (s *slots) renewal(more, most int) (used, want int) {
	need := max(s.used, s.peak)
	if s.asked {
		need += more
	}
	if need > 0 {
		need += s.spare(most)
	}
	s.peak, s.asked = s.used, false
	return s.used, min(need, most)
}

// active reports whether Redis has, or should have, a lease of this front door.
func (s *slots) active() bool { return s.used > 0 || s.peak > 0 || s.held > 0 || s.asked }

// lease is a response of Redis.
type lease struct{ granted, fair, others int }

// leased applies the response to a request for want slots of a limit most. The lifetime starts at
// sent, before the request, so that the lease expires here before it expires in Redis.
func (s *slots) leased(l lease, want, most int, sent, now time.Time, ttl time.Duration) {
	s.held, s.fair, s.others = l.granted, l.fair, l.others
	s.till = sent.Add(ttl - ttl/leaseRenewals)
	// A request for no slots, because none are in use, cannot be denied.
	if s.used >= min(s.held, s.fair) && (s.held < want || s.used >= most) {
		s.denied = now.Add(deniedFor)
	} else {
		s.denied = time.Time{}
	}
}
