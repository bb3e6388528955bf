package issued

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) {
	askFor = time.Minute // a machine that runs many tests can stand still for seconds
	goleak.VerifyTestMain(m)
}

// everything is whoever may do everything.
var everything = &schema.Principal{Name: "root"}

func open(t testing.TB, srv *bustest.Server) *Keys {
	t.Helper()
	k := Open(t.Context(), Options{Conn: srv.Connect(t, "frontdoor"), Log: slog.New(slog.DiscardHandler)})
	if k.fault != nil {
		t.Fatal(k.fault)
	}
	t.Cleanup(k.Close)
	return k
}

func (k *Keys) must(t testing.TB, name string, scopes ...string) (Key, string) {
	t.Helper()
	key, secret, err := k.Create(t.Context(), everything, Settings{Name: name, Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	return key, secret
}

func kindOf(t *testing.T, err error, want schema.Kind) {
	t.Helper()
	if schema.KindOf(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestKeyIsAcceptedEverywhereUntilRevoked(t *testing.T) {
	srv := bustest.Start(t)
	a, b := open(t, srv), open(t, srv)
	key, secret := a.must(t, "ci", scope.ReadTools, "tools:call:files")
	if strings.Contains(fmt.Sprintf("%+v", key), secret) {
		t.Error("the key holds its secret")
	}
	for _, k := range []*Keys{a, b} { // b has perhaps not seen it yet, and asks the store
		who, err := k.Authenticate(t.Context(), secret)
		if err != nil || who.Name != "ci" || !who.Has(scope.ReadTools) || who.Has(scope.Admin) || who.MayCall("files", "read") != nil || who.MayCall("mail", "send") == nil {
			t.Fatalf("%+v %v", who, err)
		}
	}
	if known, err := b.Valid("ci"); !known || err != nil {
		t.Errorf("%t %v", known, err)
	}
	if err := a.Revoke(t.Context(), everything, key.ID, key.Revision); err != nil {
		t.Fatal(err)
	}
	_, err := a.Authenticate(t.Context(), secret)
	kindOf(t, err, schema.KindUnauthenticated)
	polltest.Until(t, "the other sees it", func() bool { _, err := b.Authenticate(t.Context(), secret); return err != nil })
	if known, _ := b.Valid("ci"); known || !b.Some() {
		t.Error("a revoked key is known")
	}
	if _, err := b.Get(everything, key.ID); schema.KindOf(err) != schema.KindNotFound {
		t.Error(err)
	}
}

func TestRotationUnderLoadRefusesNoRequest(t *testing.T) {
	srv := bustest.Start(t)
	doors := []*Keys{open(t, srv), open(t, srv)}
	key, first := doors[0].must(t, "ci", scope.ReadTools)
	var secret atomic.Pointer[string]
	secret.Store(&first)
	var refused, taken atomic.Int64
	var load sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for i := range 4 {
		load.Go(func() {
			for ctx.Err() == nil {
				if _, err := doors[i%2].Authenticate(t.Context(), *secret.Load()); err != nil {
					refused.Add(1)
				}
				taken.Add(1)
			}
		})
	}
	secrets := []string{first}
	for i := range mostFormer {
		before := taken.Load()
		polltest.Until(t, "requests between two rotations", func() bool { return taken.Load() > before })
		next, s, err := doors[i%2].Rotate(t.Context(), everything, key.ID, key.Revision, time.Hour, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		key = next
		secret.Store(&s)
		secrets = append(secrets, s)
		if other := doors[(i+1)%2]; i+1 < mostFormer { // whoever rotates next must have seen this
			polltest.Until(t, "the rotation", func() bool { k, err := other.Get(everything, key.ID); return err == nil && k.Revision == key.Revision })
		}
	}
	stop()
	load.Wait()
	if refused.Load() > 0 {
		t.Errorf("%d of %d refused", refused.Load(), taken.Load())
	}
	for i, s := range secrets {
		if _, err := doors[1].Authenticate(t.Context(), s); err != nil {
			t.Errorf("secret %d in its time of grace: %v", i, err)
		}
	}
	for i, s := range secrets {
		sum := digest(s)
		if late := time.Now().Add(2 * time.Hour); matches(&key.Key, &sum, late) != (i == len(secrets)-1) {
			t.Errorf("secret %d after its time of grace", i)
		}
	}
	polltest.Until(t, "the last rotation", func() bool { k, _ := doors[0].Get(everything, key.ID); return k.Revision == key.Revision })
	_, _, err := doors[0].Rotate(t.Context(), everything, key.ID, key.Revision, time.Hour, time.Time{})
	kindOf(t, err, schema.KindConflict)
	if err := doors[0].Revoke(t.Context(), everything, key.ID, key.Revision); err != nil {
		t.Fatal(err)
	}
	for i, s := range secrets {
		if _, err := doors[0].Authenticate(t.Context(), s); err == nil {
			t.Errorf("secret %d of a revoked key", i)
		}
	}
}

func TestWithoutStoreKnownKeysWorkAndOthersAreUnavailable(t *testing.T) {
	srv := bustest.Start(t)
	a, b := open(t, srv), open(t, srv)
	known, secret := a.must(t, "known", scope.ReadTools)
	polltest.Until(t, "the other knows it", func() bool { _, err := b.Get(everything, known.ID); return err == nil })
	srv.Stop()
	polltest.Until(t, "the connection is gone", func() bool { return b.o.Conn.Ready() != nil })
	if _, err := b.Authenticate(t.Context(), secret); err != nil {
		t.Errorf("a known key: %v", err)
	}
	for what, s := range map[string]string{"a key of which nothing is known": newSecret(IDOf("other")), "another secret of a known key": newSecret(known.ID)} {
		if _, err := b.Authenticate(t.Context(), s); schema.KindOf(err) != schema.KindUnavailable || !schema.AsError(err).Retryable {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := b.Authenticate(t.Context(), secret[:len(secret)-1]+"_")
	kindOf(t, err, schema.KindUnauthenticated) // damaged, whatever the store has
}

func TestConcurrentCreationOfAKeyNameSucceedsOnce(t *testing.T) {
	srv := bustest.Start(t)
	doors := []*Keys{open(t, srv), open(t, srv)}
	var won atomic.Int64
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			_, _, err := doors[i%2].Create(t.Context(), everything, Settings{Name: "one", Scopes: []string{scope.ReadTools}})
			if err == nil {
				won.Add(1)
			} else if schema.KindOf(err) != schema.KindConflict {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d won", won.Load())
	}
}

func TestKeyCannotExceedTheScopesOfItsCreator(t *testing.T) {
	k := open(t, bustest.Start(t))
	by := func(scopes, tools []string, groups ...string) *schema.Principal {
		set, err := scope.Parse(scopes)
		if err != nil {
			t.Fatal(err)
		}
		return &schema.Principal{Name: "maker", Groups: groups, Grant: &scope.Grant{Scopes: set, Tools: tools}}
	}
	admin := []string{scope.Admin, "tools:call:files"}
	for i, c := range []struct {
		by *schema.Principal
		w  Settings
		ok bool
	}{
		{everything, Settings{Scopes: scope.All(), Groups: []string{"approvers"}}, true},
		{by(admin, nil), Settings{Scopes: []string{"tools:call:files"}}, true},
		{by(admin, nil), Settings{Scopes: []string{scope.CallTools}}, false},
		{by(admin, nil), Settings{Scopes: []string{scope.Admin}, Groups: []string{"approvers"}}, false},
		{by(admin, nil, "approvers"), Settings{Scopes: []string{scope.Admin}, Groups: []string{"approvers"}}, true},
		{by(admin, []string{"files/read_*"}), Settings{Scopes: []string{"tools:call:files"}}, false},
		{by(admin, []string{"files/read_*"}), Settings{Scopes: []string{"tools:call:files"}, Tools: []string{"files/*"}}, false},
		{by(admin, []string{"files/read_*"}), Settings{Scopes: []string{"tools:call:files"}, Tools: []string{"files/read_*", "files/read_x"}}, true},
		{by(admin, []string{"files/*"}), Settings{Scopes: []string{"tools:call:files"}, Tools: []string{"files/read_*"}}, false}, // it is not found out whether patterns are narrower
	} {
		c.w.Name = fmt.Sprint("key ", i)
		_, _, err := k.Create(t.Context(), c.by, c.w)
		if c.ok != (err == nil) || err != nil && schema.KindOf(err) != schema.KindForbidden {
			t.Errorf("%d: %v", i, err)
		}
	}
	strong, _ := k.must(t, "strong", scope.CallTools)
	_, _, err := k.Rotate(t.Context(), by(admin, nil), strong.ID, strong.Revision, 0, time.Time{})
	kindOf(t, err, schema.KindForbidden) // it would hold the key afterwards
	_, err = k.Update(t.Context(), by(admin, nil), strong.ID, strong.Revision, func(w *Settings) { w.Note = "mine" })
	kindOf(t, err, schema.KindForbidden)
	mine, _, err := k.Create(t.Context(), by(admin, nil), Settings{Name: "mine", Scopes: []string{scope.Admin}})
	if err != nil || mine.Owner != "maker" {
		t.Error(mine.Owner, err)
	}
	_, err = k.Update(t.Context(), everything, strong.ID, strong.Revision+1, func(*Settings) {})
	if !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
}

func TestInvalidKeysAreRefusedWithTheirFaults(t *testing.T) {
	k := open(t, bustest.Start(t))
	k.o.Reserved = func(name string) string { return map[bool]string{true: "is reserved"}[name == "taken"] }
	good := Settings{Name: "x", Scopes: []string{scope.ReadTools}}
	for what, change := range map[string]func(*Settings){
		"/name": func(w *Settings) { w.Name = "" }, "/name ": func(w *Settings) { w.Name = "local" }, "/name  ": func(w *Settings) { w.Name = "taken" }, "/name   ": func(w *Settings) { w.Name = "a\nb" },
		"/name    ": func(w *Settings) { w.Name = "oidc:ann" }, "/name     ": func(w *Settings) { w.Name = " x" }, "/owner ": func(w *Settings) { w.Owner = "al\u200bice" }, "/tenant": func(w *Settings) { w.Tenant = "-x" },
		"/owner": func(w *Settings) { w.Owner = strings.Repeat("x", 129) }, "/note": func(w *Settings) { w.Note = "\xff" }, "/scopes": func(w *Settings) { w.Scopes = nil }, "/scopes ": func(w *Settings) { w.Scopes = []string{"all"} },
		"/groups/0": func(w *Settings) { w.Groups = []string{""} }, "/groups": func(w *Settings) { w.Groups = make([]string, 65) }, "/tools/0": func(w *Settings) { w.Tools = []string{"files"} },
		"/expires_at": func(w *Settings) { w.Expires = time.Now().Add(-time.Second) }, "/expires_at ": func(w *Settings) { w.Expires = time.Now().Add(2 * MostLasts) },
	} {
		w := good
		change(&w)
		_, _, err := k.Create(t.Context(), everything, w)
		if e := schema.AsError(err); err == nil || e.Kind != schema.KindInvalidRequest || len(e.Faults) == 0 || e.Faults[0].Pointer != strings.TrimSpace(what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	key, _, err := k.Create(t.Context(), everything, good)
	if left := time.Until(key.Expires.Time()); err != nil || left > Lasts || left < Lasts-time.Minute {
		t.Errorf("it ends in %v, %v", left, err)
	}
}

func TestTheLastUseIsWrittenToTheMinute(t *testing.T) {
	srv := bustest.Start(t)
	a, b := open(t, srv), open(t, srv)
	key, secret := a.must(t, "ci", scope.ReadTools)
	if _, err := a.Authenticate(t.Context(), secret); err != nil || !key.LastUsed.IsZero() {
		t.Fatal(key.LastUsed, err)
	}
	before := time.Now().Truncate(time.Minute)
	a.flush(t.Context())
	polltest.Until(t, "the other knows it", func() bool {
		k, err := b.Get(everything, key.ID)
		return err == nil && !k.LastUsed.Before(before) && k.LastUsed.Equal(k.LastUsed.Truncate(time.Minute))
	})
	if err := a.Revoke(t.Context(), everything, key.ID, key.Revision); err != nil {
		t.Fatal(err)
	}
	a.flush(t.Context())
	if a.seen[key.ID] != nil {
		t.Error("a revoked key stays in memory")
	}
}

func TestWithoutItsTableKeysAreUnavailable(t *testing.T) {
	k := &Keys{o: Options{Log: slog.New(slog.DiscardHandler)}, fault: errors.New("no table")}
	_, err := k.Authenticate(t.Context(), newSecret(IDOf("x")))
	kindOf(t, err, schema.KindUnavailable)
	_, _, err = k.Create(t.Context(), everything, Settings{Name: "x", Scopes: []string{scope.ReadTools}})
	kindOf(t, err, schema.KindUnavailable)
	if len(k.List(everything)) > 0 || k.Some() {
		t.Error("there are keys")
	}
	k.Close()
	(*Keys)(nil).Close()
}

func TestTenantOperatorSeesKeysOfItsTenantOnly(t *testing.T) {
	k := open(t, bustest.Start(t))
	all := scope.Of(scope.All())
	ofA, ofB := &schema.Principal{Name: "a", Tenant: "a", Grant: &scope.Grant{Scopes: all}}, &schema.Principal{Name: "b", Tenant: "b", Grant: &scope.Grant{Scopes: all}}
	key, secret, err := k.Create(t.Context(), ofA, Settings{Name: "a/x", Scopes: scope.All()})
	if err != nil || key.Tenant != "a" {
		t.Fatal(key, err)
	}
	if who, err := k.Authenticate(t.Context(), secret); err != nil || who.Tenant != "a" {
		t.Error(who, err)
	}
	if len(k.List(ofA)) != 1 || len(k.List(ofB)) != 0 || len(k.List(everything)) != 1 {
		t.Error("the lists are wrong")
	}
	_, foreign := k.Get(ofB, key.ID)
	_, unknown := k.Get(ofB, IDOf("nobody"))
	if foreign == nil || unknown == nil || foreign.Error() != unknown.Error() {
		t.Errorf("%v, %v", foreign, unknown)
	}
	_, err = k.Update(t.Context(), ofB, key.ID, key.Revision, func(*Settings) {})
	kindOf(t, err, schema.KindNotFound)
	_, _, err = k.Rotate(t.Context(), ofB, key.ID, key.Revision, 0, time.Time{})
	kindOf(t, err, schema.KindNotFound)
	kindOf(t, k.Revoke(t.Context(), ofB, key.ID, key.Revision), schema.KindNotFound)
	_, _, err = k.Create(t.Context(), ofB, Settings{Name: "a/y", Tenant: "a", Scopes: scope.All()})
	kindOf(t, err, schema.KindForbidden)
	made, _, err := k.Create(t.Context(), everything, Settings{Name: "b/z", Tenant: "b", Scopes: scope.All()})
	if err != nil || made.Tenant != "b" {
		t.Error(made, err)
	}
}

func TestKeyForAnotherOwnerIsRefused(t *testing.T) {
	k := open(t, bustest.Start(t))
	admin := &schema.Principal{Name: "ops-1", Owner: "olga", Tenant: "a", Grant: &scope.Grant{Scopes: scope.Of(scope.All())}}
	scopes := []string{scope.CallTools}
	own, _, err := k.Create(t.Context(), admin, Settings{Name: "a/own", Scopes: scopes})
	if err != nil || own.Owner != "olga" {
		t.Fatal(own.Owner, err)
	}
	_, _, err = k.Create(t.Context(), admin, Settings{Name: "a/other", Owner: "alice", Scopes: scopes})
	kindOf(t, err, schema.KindForbidden)
	for _, owner := range []string{"alice", ""} { // without an owner it would act for its name
		_, err = k.Update(t.Context(), admin, own.ID, own.Revision, func(w *Settings) { w.Owner = owner })
		kindOf(t, err, schema.KindForbidden)
	}
	hers, _, err := k.Create(t.Context(), everything, Settings{Name: "a/hers", Tenant: "a", Owner: "alice", Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = k.Rotate(t.Context(), admin, hers.ID, hers.Revision, 0, time.Time{})
	kindOf(t, err, schema.KindForbidden)
	if _, err = k.Update(t.Context(), admin, hers.ID, hers.Revision, func(w *Settings) { w.Note = "seen" }); err != nil {
		t.Error(err)
	}
}

func TestTenantKeyNamesNeedTheTenantPrefix(t *testing.T) {
	k := open(t, bustest.Start(t))
	for name, ok := range map[string]bool{"a/ci": true, "ci": false, "a/": false, "b/ci": false, "a": false} {
		_, _, err := k.Create(t.Context(), everything, Settings{Name: name, Tenant: "a", Scopes: []string{scope.ReadTools}})
		if e := schema.AsError(err); ok != (err == nil) || err != nil && (e.Kind != schema.KindInvalidRequest || e.Faults[0].Pointer != "/name") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestARotationShortensTheGraceOfEarlierSecrets(t *testing.T) {
	k := open(t, bustest.Start(t))
	key, first := k.must(t, "ci", scope.ReadTools)
	var last string
	for _, grace := range []time.Duration{time.Hour, time.Minute} {
		next, s, err := k.Rotate(t.Context(), everything, key.ID, key.Revision, grace, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		key, last = next, s
	}
	sum := digest(first)
	if now := time.Now(); !matches(&key.Key, &sum, now) || matches(&key.Key, &sum, now.Add(2*time.Minute)) {
		t.Error("the first secret does not end with the grace of the second rotation")
	}
	key, _, err := k.Rotate(t.Context(), everything, key.ID, key.Revision, 0, time.Time{})
	if err != nil || len(key.Former) != 0 {
		t.Fatal(key.Former, err)
	}
	for _, s := range []string{first, last} {
		_, err := k.Authenticate(t.Context(), s)
		kindOf(t, err, schema.KindUnauthenticated)
	}
}

func TestKeyLargerThanARowIsRefused(t *testing.T) {
	k := open(t, bustest.Start(t))
	w := Settings{Name: "ci", Scopes: []string{scope.ReadTools}}
	for i := range MostTools {
		w.Tools = append(w.Tools, fmt.Sprintf("files/%0100d", i))
	}
	_, _, err := k.Create(t.Context(), everything, w)
	kindOf(t, err, schema.KindInvalidRequest)
	key, _ := k.must(t, "ci", scope.ReadTools)
	_, err = k.Update(t.Context(), everything, key.ID, key.Revision, func(now *Settings) { now.Tools = w.Tools })
	kindOf(t, err, schema.KindInvalidRequest)
}

func TestTablesMissingAtStartAreOpenedLater(t *testing.T) {
	srv := bustest.Start(t)
	_, secret := open(t, srv).must(t, "ci", scope.ReadTools)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	k := Open(ended, Options{Conn: srv.Connect(t, "frontdoor"), Log: slog.New(slog.DiscardHandler)})
	defer k.Close()
	_, err := k.Authenticate(t.Context(), secret)
	kindOf(t, err, schema.KindUnavailable)
	polltest.Until(t, "the key is accepted", func() bool { _, err := k.Authenticate(t.Context(), secret); return err == nil })
}
