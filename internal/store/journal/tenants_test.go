package journal_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// reads is every way to ask a store for something of a journal by its id.
func reads(s *journal.Store) map[string]func(context.Context, schema.TenantID, schema.BatchID) error {
	same := func(*journal.Manifest) error { return nil }
	outside := journal.Object{Name: "x", Size: 1}
	return map[string]func(context.Context, schema.TenantID, schema.BatchID) error{
		"Get": func(ctx context.Context, t schema.TenantID, id schema.BatchID) error {
			_, err := s.Get(ctx, t, id)
			return err
		},
		"Change": func(ctx context.Context, t schema.TenantID, id schema.BatchID) error {
			_, err := s.Change(ctx, t, id, same)
			return err
		},
		"Claim": func(ctx context.Context, t schema.TenantID, id schema.BatchID) error {
			_, err := s.Claim(ctx, t, id, "x")
			return err
		},
		"ClaimEnded": func(ctx context.Context, t schema.TenantID, id schema.BatchID) error {
			_, err := s.ClaimEnded(ctx, t, id, "x")
			return err
		},
		"Write": func(ctx context.Context, t schema.TenantID, id schema.BatchID) error {
			_, err := s.Write(ctx, t, id)
			return err
		},
		"Seal": func(ctx context.Context, t schema.TenantID, id schema.BatchID) error {
			_, err := s.Seal(ctx, t, id)
			return err
		},
		"PurgeCalls": s.PurgeCalls,
		"Forget":     s.Payloads.Forget,
		"Delete":     s.Delete,
		"Calls": func(ctx context.Context, t schema.TenantID, id schema.BatchID) error {
			_, err := s.Calls(ctx, t, id, 0, 1)
			return err
		},
		"CallsFrom": func(ctx context.Context, t schema.TenantID, id schema.BatchID) error {
			_, err := s.CallsFrom(ctx, t, id, 0, 1)
			return err
		},
		"FindCall": func(ctx context.Context, t schema.TenantID, id schema.BatchID) error {
			_, err := s.FindCall(ctx, schema.OnlyTenant(t), id, 0)
			return err
		},
		"Accepted": func(ctx context.Context, t schema.TenantID, id schema.BatchID) error {
			_, err := s.Accepted(ctx, t, id)
			return err
		},
		"Results": func(ctx context.Context, t schema.TenantID, id schema.BatchID) error {
			_, _, err := s.Results(ctx, t, id, journal.Cursor{}, 1)
			return err
		},
		"Follow": func(ctx context.Context, t schema.TenantID, id schema.BatchID) error {
			return s.Follow(ctx, t, id, journal.Cursor{}, func([]journal.ResultRecord, journal.Cursor) error { return nil })
		},
		"FindResult": func(ctx context.Context, t schema.TenantID, id schema.BatchID) error {
			_, err := s.FindResult(ctx, t, id, 0, journal.Cursor{})
			return err
		},
		"WaitResult": func(ctx context.Context, t schema.TenantID, id schema.BatchID) error {
			_, err := s.WaitResult(ctx, t, id, 0)
			return err
		},
		"Arguments": func(ctx context.Context, t schema.TenantID, id schema.BatchID) error {
			_, err := s.Arguments(ctx, t, id, &journal.CallRecord{ArgumentsObject: outside})
			return err
		},
		"ResultBody": func(ctx context.Context, t schema.TenantID, id schema.BatchID) error {
			_, err := s.ResultBody(ctx, t, id, &journal.ResultRecord{BodyObject: outside})
			return err
		},
	}
}

func TestAJournalOfAnotherTenantIsUnknown(t *testing.T) {
	p := newPlace(t, embedded.Options{})
	here, far := p.connect(t, journal.Options{}), p.connect(t, journal.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	red := batch()
	red.Principal.Tenant = "red"
	ended(t, here, red)
	none := batch()
	ended(t, here, none)
	for name, s := range map[string]*journal.Store{"in the view": here, "elsewhere": far} {
		for what, ask := range reads(s) {
			for by, id := range map[schema.TenantID]schema.BatchID{"blue": red.ID, "": red.ID, "red": none.ID} {
				unknown := schema.BatchID(schema.NewID("batch"))
				is, want := ask(ctx, by, id), ask(ctx, by, unknown)
				if schema.KindOf(is) != schema.KindNotFound || want == nil || strings.ReplaceAll(is.Error(), string(id), string(unknown)) != want.Error() {
					t.Errorf("%s, %s by %q: of another tenant: %v; unknown: %v", name, what, by, is, want)
				}
			}
		}
		for _, m := range []*journal.Manifest{red, none} {
			if got, err := s.FindResult(ctx, m.Principal.Tenant.OrDefault(), m.ID, 0, journal.Cursor{}); err != nil || string(got.Body) != `{"r":0}` {
				t.Errorf("%s, the own result: %+v, %v", name, got, err)
			}
		}
	}
}

// ended stores a journal with one call that has ended.
func ended(t *testing.T, s *journal.Store, m *journal.Manifest) {
	t.Helper()
	ctx := t.Context()
	w, err := s.Begin(ctx, m)
	ok(t, err)
	_, err = w.Append(ctx, calls(0, 1))
	ok(t, err)
	_, err = w.Seal(ctx)
	ok(t, err)
	o, err := s.Claim(ctx, m.Principal.Tenant, m.ID, "fd-1")
	ok(t, err)
	ok(t, o.Results(ctx, done(0)))
	_, err = o.SetState(ctx, func(m *journal.Manifest) error { m.State = journal.Running; return nil })
	ok(t, err)
	_, err = o.SetState(ctx, func(m *journal.Manifest) error { m.End(journal.Completed, ""); return nil })
	ok(t, err)
	ok(t, o.Release(ctx))
}

func TestCallsInALaneBelongToTheirOwnTenant(t *testing.T) {
	s, ctx := start(t), t.Context()
	m := &journal.Manifest{Kind: journal.Lane, Principal: schema.Principal{Name: "fd-1"}, Expires: time.Now().Add(time.Hour)}
	w, err := s.Begin(ctx, m)
	ok(t, err)
	t.Cleanup(w.Close)
	large := bytes.Repeat([]byte("x"), 300<<10)
	of := []schema.TenantID{"", "red", "red"} // the last result is from before results had a tenant
	all := calls(0, len(of))
	for i := range all {
		all[i].Principal, all[i].Arguments = schema.Principal{Name: "ann", Tenant: of[i]}, bytes.Clone(large)
	}
	_, err = w.Append(ctx, all)
	ok(t, err)
	o, err := s.Claim(ctx, "", m.ID, "fd-1")
	ok(t, err)
	t.Cleanup(o.Close)
	for i := range of {
		r := done(i)
		if r.Body = bytes.Clone(large); i < 2 {
			r.Tenant = of[i]
		}
		ok(t, o.Results(ctx, r))
	}
	for _, by := range []schema.TenantID{"", "red", "blue"} {
		for i, owner := range of {
			mine, index := by.Is(owner), uint64(i)
			if i == 2 && by == "" {
				continue // of such a result only its call says whose it is, and it is read before
			}
			c, err := s.FindCall(ctx, schema.OnlyTenant(by), m.ID, index)
			if mine != (err == nil) || !mine && schema.KindOf(err) != schema.KindNotFound {
				t.Errorf("FindCall %d by %q: %v", i, by, err)
			}
			r, err := s.FindResult(ctx, by, m.ID, index, journal.Cursor{})
			if mine != (err == nil) || !mine && schema.KindOf(err) != schema.KindNotFound {
				t.Errorf("FindResult %d by %q: %v", i, by, err)
			}
			wait, cancel := context.WithTimeout(ctx, 30*time.Second)
			if !mine { // it waits for a result like for one that is not there yet
				wait, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
			}
			if w, err := s.WaitResult(wait, by, m.ID, index); mine != (err == nil) || mine && w.Index != index {
				t.Errorf("WaitResult %d by %q: %v", i, by, err)
			}
			cancel()
			if mine && err == nil {
				if body, err := s.ResultBody(ctx, by, m.ID, r); err != nil || !bytes.Equal(body, large) {
					t.Errorf("the own result %d: %d bytes, %v", i, len(body), err)
				}
				if _, err := s.ResultBody(ctx, "blue", m.ID, r); schema.KindOf(err) != schema.KindNotFound {
					t.Errorf("somebody else's result: %v", err)
				}
				if _, err := s.Arguments(ctx, "blue", m.ID, c); schema.KindOf(err) != schema.KindNotFound {
					t.Errorf("somebody else's arguments: %v", err)
				}
			}
		}
		page, err := s.Calls(ctx, by, m.ID, 0, 10)
		ok(t, err)
		for i := range page {
			if shown := page[i].Server != ""; page[i].Index != uint64(i) || shown != by.Is(of[i]) {
				t.Errorf("Calls by %q: %+v", by, page[i])
			}
		}
		results, _, err := s.Results(ctx, by, m.ID, journal.Cursor{}, 10)
		ok(t, err)
		for i := range results {
			if !by.Is(results[i].Tenant) {
				t.Errorf("Results by %q: %+v", by, results[i])
			}
		}
		if want := map[schema.TenantID]int{"": 2, "red": 1}[by]; len(results) != want {
			t.Errorf("Results by %q: %d", by, len(results))
		}
	}
}

func TestListsOfJournalsShowOneTenant(t *testing.T) {
	s, ctx := start(t), t.Context()
	seen := make(chan schema.TenantID, 10)
	t.Cleanup(s.Watch(schema.OnlyTenant("red"), func(m *journal.Manifest) { seen <- m.Principal.Tenant }))
	for _, tenant := range []schema.TenantID{"", "blue", "red"} {
		m := batch()
		m.Principal.Tenant = tenant
		ok(t, s.Create(ctx, m))
	}
	if got := <-seen; got != "red" {
		t.Errorf("a watch of red showed one of %q", got)
	}
	for of, want := range map[schema.Tenants]int{{}: 0, schema.OnlyTenant("red"): 1, schema.OnlyTenant(""): 1, schema.AllTenants(): 3} {
		page, _ := s.List(of, journal.Filter{}, "")
		each, open := 0, 0
		s.Each(of, func(*journal.Manifest) { each++ })
		s.EachOpen(of, func(*journal.Manifest) { open++ })
		unended := s.Unended(of, func(*journal.Manifest) bool { return true })
		if len(page) != want || each != want || open != want || len(unended) != want {
			t.Errorf("%v: List %d, Each %d, EachOpen %d, Unended %d; want %d", of, len(page), each, open, len(unended), want)
		}
	}
}

func TestIdempotencyKeysArePerTenant(t *testing.T) {
	// The hash of the default tenant is what it was before there were tenants.
	const want = "8e45864bc07ccbbd95e2752681c155439154f9db894b96551869d8a69b804ff1"
	ann := journal.KeyHash(schema.PrincipalID{Name: "ann"}, "k")
	if ann != journal.KeyHash(schema.PrincipalID{Tenant: schema.DefaultTenant, Name: "ann"}, "k") || ann != want {
		t.Errorf("the default tenant: %s", ann)
	}
	red, blue := journal.KeyHash(schema.PrincipalID{Tenant: "red", Name: "ann"}, "k"), journal.KeyHash(schema.PrincipalID{Tenant: "blue", Name: "ann"}, "k")
	if red == blue || red == ann {
		t.Errorf("two tenants share the key %s", red)
	}
}
