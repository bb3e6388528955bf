package web

import (
	"strconv"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Keys outlive sessions that were evicted, so that one person could drop the keys of all others.
func TestKeysOfOnePersonDropNoKeyOfAnother(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	v := newVault(func() time.Time { return now }, 24*time.Hour)
	v.put(schema.PrincipalID{Name: "bob"}, "bob", "key of bob")
	for i := range 2 * maxSessionsEach {
		now = now.Add(time.Second)
		v.put(schema.PrincipalID{Name: "ada"}, strconv.Itoa(i), "key of ada")
	}
	if got := v.get("bob"); got != "key of bob" || len(v.by) != maxSessionsEach+1 {
		t.Errorf("another person has the key %q, there are %d", got, len(v.by))
	}
	if got := v.get(strconv.Itoa(2*maxSessionsEach - 1)); got != "key of ada" {
		t.Errorf("the last key is %q", got)
	}
}

// Otherwise one person, or a program with one key, could end the sessions of all others.
func TestSignInsOfOnePersonEndNoSessionOfAnother(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := newSessions(func() time.Time { return now }, 0)
	begin := func(cookie, name string) {
		now = now.Add(time.Second)
		s.put(cookie, session{who: schema.Principal{Name: name}, expires: now.Add(24 * time.Hour)})
	}
	begin("bob", "bob")
	for i := range maxSessions {
		begin(strconv.Itoa(i), "ada")
	}
	if _, ok := s.get("bob", true); !ok {
		t.Error("the session of another person has ended")
	}
	valid := 0
	for i := range maxSessions {
		if _, ok := s.get(strconv.Itoa(i), true); ok {
			valid++
		}
	}
	if _, ok := s.get(strconv.Itoa(maxSessions-1), true); valid != maxSessionsEach || !ok {
		t.Errorf("%d sessions of the person are valid, the last one: %v", valid, ok)
	}
}
