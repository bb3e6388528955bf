package quota

import (
	"testing"
	"time"
)

func TestLeaseReleasedWhileIdleRefusesNoCall(t *testing.T) {
	const most, ttl = 100, 3 * time.Second
	now := time.Now()
	var s slots
	s.leased(lease{granted: 4, fair: 4}, s.want(1, most), most, now, now, ttl)
	s.take()
	s.used--
	s.renewal(1, most) // the one in which the call is remembered
	_, want := s.renewal(1, most)
	if want != 0 {
		t.Fatalf("with nothing under way %d slots are asked for", want)
	}
	s.leased(lease{}, want, most, now, now, ttl)
	if ok, ask := s.look(now, interactive, most, 1, true); ok || !ask {
		t.Errorf("the next call gets a slot: %t, one is asked for: %t; want a question", ok, ask)
	}
}

func TestDeniedLeaseIsRequestedAgainAfterADelay(t *testing.T) {
	const most, ttl = 4, 3 * time.Second
	now := time.Now()
	for name, granted := range map[string]lease{"others have the rest": {granted: 1, fair: 1, others: 3}, "the limit is reached": {granted: 4, fair: 4}} {
		var s slots
		s.used = granted.granted
		s.leased(granted, s.want(1, most), most, now, now, ttl)
		if ok, ask := s.look(now.Add(deniedFor-1), interactive, most, 1, true); ok || ask {
			t.Errorf("%s: a slot %t, a question %t; want a refusal", name, ok, ask)
		}
		if ok, ask := s.look(now.Add(deniedFor), interactive, most, 1, true); ok || !ask {
			t.Errorf("%s: a slot %t, a question %t after %s; want a question", name, ok, ask, deniedFor)
		}
	}
}
