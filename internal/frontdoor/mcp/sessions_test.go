package mcp

import (
	"log/slog"
	"net/http"
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

// entered counts a request in flight in a session.
func entered(t *testing.T, sess *session) (leave func()) {
	t.Helper()
	leave, ok := sess.enter()
	if !ok {
		t.Fatal("the session has ended")
	}
	return leave
}

func TestARequestAndTheEndOfItsSessionExcludeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(slog.New(slog.DiscardHandler))
		all := openSessions(t, s, "caller", "", 2)
		time.Sleep(time.Hour)
		leave := entered(t, all[0])
		s.sweep(time.Now(), time.Minute)
		if all[0].isOver() || !all[1].isOver() {
			t.Error("a session in use was dropped, or an unused one was not")
		}
		leave()
		if _, ok := all[1].enter(); ok {
			t.Error("a request entered a session that was dropped")
		}

		// The client ends the session before its request begins: only 404 makes it open a new one.
		s.end(all[0])
		if _, _, f := all[0].begin(t.Context(), []byte("1")); f == nil || f.status != http.StatusNotFound || f.Code != mcpwire.CodeNoSession {
			t.Errorf("%+v", f)
		}
	})
}

func TestCallerWithManySessionsDoesNotEvictOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(slog.New(slog.DiscardHandler))
		few := openSessions(t, s, "few", "", 3)
		// Two tenants may have principals with the same name.
		openSessions(t, s, "few", "red", 4_000)
		many := openSessions(t, s, "many", "", 3_000)
		leave := entered(t, many[0])
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
			defer entered(t, sess)()
		}
		for len(s.all()) < maxSessions {
			defer entered(t, openSessions(t, s, "many", "", 1)[0])()
		}
		if s.add(&exchange{}, mcpwire.LegacyNewest, nil) != nil {
			t.Error("a session in use made room")
		}
	})
}
