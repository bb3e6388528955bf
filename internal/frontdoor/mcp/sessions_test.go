package mcp

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

// openSessions opens a number of sessions of a principal, a moment apart.
func openSessions(t *testing.T, s *sessions, name string, tenant schema.TenantID, count int) (all []*session) {
	t.Helper()
	for range count {
		time.Sleep(time.Millisecond)
		sess := s.add(&exchange{principal: schema.Principal{Name: name, Tenant: tenant}}, mcpwire.LegacyNewest, nil)
		if sess == nil {
			t.Fatalf("%s cannot open a session", name)
		}
		all = append(all, sess)
	}
	return all
}

func TestCallerWithManySessionsDoesNotEvictOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(slog.New(slog.DiscardHandler))
		few := openSessions(t, s, "few", "", 3)
		// Two tenants may have principals with the same name.
		openSessions(t, s, "few", "red", 4_000)
		many := openSessions(t, s, "many", "", 3_000)
		leave := many[0].enter()
		many = append(many, openSessions(t, s, "many", "", 4_000)...)
		few = append(few, openSessions(t, s, "few", "", 2)...)
		if n := len(s.all()); n > maxSessions {
			t.Errorf("there are %d sessions", n)
		}
		for i, sess := range few {
			if sess.isOver() {
				t.Errorf("session %d of the principal with few has ended", i)
			}
		}
		if many[0].isOver() || many[len(many)-1].isOver() || !many[1].isOver() {
			t.Error("the session in use or the newest one of the principal with the most has ended, or the oldest one has not")
		}
		leave()

		// Sessions with a request in flight are not dropped.
		for _, sess := range s.all() {
			defer sess.enter()()
		}
		for len(s.all()) < maxSessions {
			defer openSessions(t, s, "many", "", 1)[0].enter()()
		}
		if s.add(&exchange{}, mcpwire.LegacyNewest, nil) != nil {
			t.Error("a session in use made room")
		}
	})
}
