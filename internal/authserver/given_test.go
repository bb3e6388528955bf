package authserver_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn/ended"
	"github.com/callyard/callyard/internal/authserver"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/schema"
)

func everybody(*authserver.Person) bool { return true }

// recorded returns a world whose events are recorded.
func recorded(t *testing.T) (w *installation, s *authserver.Server, events func() []authserver.Event) {
	t.Helper()
	var all []authserver.Event
	var open *installation
	w, s = newInstallation(t, func(o *authserver.Options) {
		o.Record = func(_ context.Context, e *authserver.Event) {
			open.mu.Lock()
			defer open.mu.Unlock()
			all = append(all, *e)
		}
	})
	open = w
	return w, s, func() []authserver.Event {
		w.mu.Lock()
		defer w.mu.Unlock()
		told := all
		all = nil
		return told
	}
}

// heard waits until a front door is notified that a grant has ended.
func heard(t *testing.T, door *ended.Grants, id string) {
	t.Helper()
	polltest.Until(t, "a front door hears of it", func() bool { return door.Has(id) })
}

func TestRevokedAccessIsRefusedAtOnce(t *testing.T) {
	w, s, _ := recorded(t)
	doors := []*ended.Grants{ended.Open(t.Context(), w.nats.Connect(t, "frontdoor"), slog.New(slog.DiscardHandler)), ended.Open(t.Context(), w.nats.Connect(t, "frontdoor"), slog.New(slog.DiscardHandler))}
	for _, d := range doors {
		defer d.Close()
	}
	kept, g := w.login(s), w.login(s)
	tok, err := w.frontDoor(nil).Verify(t.Context(), g.Access, resource)
	if err != nil || tok.Grant == "" {
		t.Fatalf("%+v, %v", tok, err)
	}
	all, err := s.Accesses(t.Context(), everybody)
	if err != nil || len(all) != 2 || all[0].Client != "app" || all[0].Name != "App" || !all[0].Used.Equal(w.now()) || strings.Join(all[0].Scopes, " ") != "tools:read tools:call" {
		t.Fatalf("%+v, %v", all, err)
	}
	nobody := func(*authserver.Person) bool { return false }
	for _, id := range []string{"", "x", strings.ToUpper(tok.Grant), strings.Repeat("0", 32), tok.Grant + "00", "*", ">"} {
		if _, err := s.End(t.Context(), id, &ada, authserver.ChannelWeb, everybody); schema.KindOf(err) != schema.KindNotFound {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := s.End(t.Context(), tok.Grant, &ada, authserver.ChannelWeb, nobody); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("of another person: %v", err)
	}
	if g = post(t, s.ServeToken, renewal(g.Refresh)); g.Status != http.StatusOK {
		t.Fatalf("what was refused ended it: %+v", g)
	}
	begun := time.Now()
	if _, err := s.End(t.Context(), tok.Grant, &ada, authserver.ChannelWeb, everybody); err != nil {
		t.Fatal(err)
	}
	for _, d := range doors {
		heard(t, d, tok.Grant)
	}
	t.Logf("two front doors heard of it within %s", time.Since(begun))
	if a := post(t, s.ServeToken, renewal(g.Refresh)); a.Error != "invalid_grant" {
		t.Errorf("its refresh token: %+v", a)
	}
	if a := post(t, s.ServeToken, renewal(kept.Refresh)); a.Status != http.StatusOK {
		t.Errorf("that of another grant: %+v", a)
	}
	if left, err := s.Accesses(t.Context(), everybody); err != nil || len(left) != 1 || left[0].ID == tok.Grant || doors[0].Has(left[0].ID) {
		t.Errorf("%+v, %v", left, err)
	}
	// A front door that starts later is notified as well.
	late := ended.Open(t.Context(), w.nats.Connect(t, "frontdoor"), slog.New(slog.DiscardHandler))
	defer late.Close()
	if !late.Has(tok.Grant) || late.Has("") || (*ended.Grants)(nil).Has(tok.Grant) {
		t.Error("a later front door does not know it")
	}
}

func TestEndedAccessesAreNotListed(t *testing.T) {
	w, s, _ := recorded(t)
	w.login(s)
	w.code(s) // never redeemed
	if all, err := s.Accesses(t.Context(), everybody); err != nil || len(all) != 2 || !all[0].Used.IsZero() && !all[1].Used.IsZero() {
		t.Errorf("%+v, %v", all, err)
	}
	w.pass(2 * time.Minute)
	if all, err := s.Accesses(t.Context(), everybody); err != nil || len(all) != 1 {
		t.Errorf("after the code: %+v, %v", all, err)
	}
	if all, err := s.Accesses(t.Context(), func(p *authserver.Person) bool { return p.Name == "eve" }); err != nil || len(all) != 0 {
		t.Errorf("of eve: %+v, %v", all, err)
	}
	w.pass(24 * time.Hour)
	if all, err := s.Accesses(t.Context(), everybody); err != nil || len(all) != 0 {
		t.Errorf("at the end: %+v, %v", all, err)
	}
}

func TestGrantStepsAreAuditedWithoutSecrets(t *testing.T) {
	w, s, events := recorded(t)
	want := func(what string, kinds ...string) []authserver.Event {
		t.Helper()
		told := events()
		var list []string
		for _, e := range told {
			list = append(list, strings.TrimSuffix(string(e.Kind)+" "+e.Why, " "))
		}
		if strings.Join(list, ", ") != strings.Join(kinds, ", ") {
			t.Errorf("%s: %q, want %q", what, list, kinds)
		}
		return told
	}
	r, err := s.Ask(t.Context(), request(), &ada)
	if err != nil {
		t.Fatal(err)
	}
	s.Deny(t.Context(), r, &ada)
	if e := want("a denial", "denied")[0]; e.By == nil || e.By.Name != ada.Name || e.Client != "app" || e.Resource != resource {
		t.Errorf("%+v", e)
	}
	code := w.code(s)
	first := post(t, s.ServeToken, redemption(code))
	second := post(t, s.ServeToken, renewal(first.Refresh))
	post(t, s.ServeToken, renewal(first.Refresh)) // within the grace period: no change
	told := want("a life", "given", "redeemed", "renewed")
	text, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{code[4:], first.Refresh[4:], second.Refresh[4:], first.Access, second.Access} {
		if strings.Contains(string(text), secret) {
			t.Errorf("a secret is recorded: %s", text)
		}
	}
	if told[0].Grant == "" || told[0].Grant != told[2].Grant || told[1].By != nil || told[1].Channel != authserver.ChannelProgram || told[0].Person.Name != ada.Name {
		t.Errorf("%+v", told)
	}
	w.pass(time.Minute)
	post(t, s.ServeToken, renewal(first.Refresh))
	want("a thief", "ended by-reuse")
	post(t, s.ServeToken, renewal(first.Refresh)) // already ended
	want("a thief, again")

	g := w.login(s)
	post(t, s.ServeRevoke, url.Values{"client_id": {"app"}, "token": {g.Refresh}})
	want("a revocation", "given", "redeemed", "ended by-program")
	code = w.code(s)
	post(t, s.ServeToken, redemption(code))
	post(t, s.ServeToken, redemption(code))
	want("a code twice", "given", "redeemed", "ended by-reuse")
	g = w.login(s)
	all, err := s.Accesses(t.Context(), everybody)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	if _, err := s.End(t.Context(), all[0].ID, &authserver.Person{Name: "root"}, authserver.ChannelAPI, everybody); err != nil {
		t.Fatal(err)
	}
	if told = want("an administrator", "given", "redeemed", "ended by-person"); told[2].By.Name != "root" || told[2].Channel != authserver.ChannelAPI || told[2].Person.Name != ada.Name {
		t.Errorf("%+v", told[2])
	}
	g = w.login(s)
	w.mu.Lock()
	w.gone[ada.Name] = true
	w.mu.Unlock()
	post(t, s.ServeToken, renewal(g.Refresh))
	want("somebody who left", "given", "redeemed", "ended by-removal")
}
