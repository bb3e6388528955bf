package enrol_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/approver/slack/enrol"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type desk struct {
	*enrol.Book
	t    *testing.T
	conn *bus.Conn
	mu   sync.Mutex
	now  time.Time
	keys []authn.Key
	of   settings.Tenants
}

func open(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, now: time.Now(), conn: bustest.Start(t).Connect(t, "approver")}
	for _, name := range []string{"ada", "mallory"} {
		k := authn.Key{Name: name, Groups: []string{"ops"}}
		_, k.Hash = authn.Generate()
		d.keys = append(d.keys, k)
	}
	d.reopen()
	t.Cleanup(func() { d.Close() })
	return d
}

func (d *desk) reopen() {
	d.t.Helper()
	if d.Book != nil {
		d.Close()
	}
	known, err := authn.NewKeys(d.keys)
	if err != nil {
		d.t.Fatal(err)
	}
	d.Book, err = enrol.Open(d.t.Context(), enrol.Options{Conn: d.conn, Keys: known, SignInFor: time.Hour, Tenants: tenants.New(d.of), Page: func() string { return "http://page/slack" }, Now: func() time.Time {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.now
	}})
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) later(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(by)
}

func (d *desk) clock() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

func (d *desk) code(who schema.Principal) string {
	d.t.Helper()
	c, _, err := d.Code(d.t.Context(), who)
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}

// link connects an account, from the code to the confirmation.
func (d *desk) link(who schema.Principal, user string) {
	d.t.Helper()
	if err := d.Typed(d.t.Context(), d.code(who), enrol.User{Team: "T1", ID: user, Name: user}); err != nil {
		d.t.Fatal(err)
	}
	d.offered(who)
	if err := d.Accept(d.t.Context(), who, d.clock(), "T1", user); err != nil {
		d.t.Fatal(err)
	}
}

// offered waits until the account is offered for confirmation.
func (d *desk) offered(who schema.Principal) {
	d.t.Helper()
	polltest.Until(d.t, "the account is offered", func() bool { return len(d.Offered(who)) > 0 })
}

func ada() schema.Principal { return schema.Principal{Name: "ada"} }
func grace() schema.Principal {
	return schema.Principal{Name: "oidc:grace@x", Owner: "grace@x", Groups: []string{"ops"}}
}

func (d *desk) is(user, name string) error {
	d.t.Helper()
	who, err := d.Of(d.t.Context(), "T1", user)
	if name == "" && err == nil {
		d.t.Errorf("%s is %s, and should be nobody", user, who.Name)
	} else if name != "" && (err != nil || who.Name != name) {
		d.t.Errorf("%s is %q, %v", user, who.Name, err)
	}
	return err
}

func TestLinkNeedsConfirmationOnBothSides(t *testing.T) {
	d := open(t)
	code := d.code(ada())
	if err := d.is("U1", ""); schema.KindOf(err) != schema.KindForbidden || !strings.Contains(err.Error(), "http://page/slack") {
		t.Errorf("an account of nobody: %v", err)
	}
	if err := d.Typed(t.Context(), strings.ToLower(code), enrol.User{Team: "T1", ID: "U1", Name: "ada"}); err != nil {
		t.Fatal(err)
	}
	_ = d.is("U1", "") // not connected before it is confirmed
	d.offered(ada())
	if len(d.Offered(schema.Principal{Name: "mallory"})) > 0 {
		t.Error("it is offered to somebody else")
	}
	for what, who := range map[string]schema.Principal{"somebody else": {Name: "mallory"}, "somebody of the same address": {Name: "oidc:ada"}} {
		if err := d.Accept(t.Context(), who, d.clock(), "T1", "U1"); err == nil {
			t.Errorf("%s confirms it", what)
		}
	}
	for _, other := range [][2]string{{"T1", "U2"}, {"T2", "U1"}, {"", ""}} {
		if err := d.Accept(t.Context(), ada(), d.clock(), other[0], other[1]); err == nil {
			t.Errorf("the account %v is confirmed, which typed nothing", other)
		}
	}
	if err := d.Accept(t.Context(), ada(), d.clock(), "T1", "U1"); err != nil {
		t.Fatal(err)
	}
	_ = d.is("U1", "ada")
	if err := d.Accept(t.Context(), ada(), d.clock(), "T1", "U1"); err == nil {
		t.Error("a code is confirmed twice")
	}
	d.reopen()
	_ = d.is("U1", "ada")
	if _, err := d.Of(t.Context(), "T2", "U1"); err == nil {
		t.Error("the account of that name in another workspace counts")
	}
}

func TestCodeWorksOnceAndExpires(t *testing.T) {
	d := open(t)
	code := d.code(ada())
	for _, wrong := range []string{"", "x", code[:len(code)-1], code + "A", strings.Repeat("A", 16), strings.Repeat("A", 1000)} {
		if err := d.Typed(t.Context(), wrong, enrol.User{Team: "T1", ID: "U9"}); schema.KindOf(err) != schema.KindNotFound {
			t.Errorf("%.20q: %v", wrong, err)
		}
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for range 20 {
		all.Go(func() {
			if d.Typed(t.Context(), code, enrol.User{Team: "T1", ID: "U1"}) == nil {
				mu.Lock()
				defer mu.Unlock()
				won++
			}
		})
	}
	all.Wait()
	if won != 1 {
		t.Errorf("%d typed the same code", won)
	}
	late := d.code(ada())
	d.later(10 * time.Minute)
	if err := d.Typed(t.Context(), late, enrol.User{Team: "T1", ID: "U1"}); err == nil {
		t.Error("a code of ten minutes ago works")
	}
	if err := d.Accept(t.Context(), ada(), d.clock(), "T1", "U1"); err == nil {
		t.Error("what was typed ten minutes ago is confirmed")
	}
}

func TestLinkEndsWithItsKeyOrAnOldSignIn(t *testing.T) {
	d := open(t)
	d.link(ada(), "U1")
	d.link(grace(), "U2")
	_ = d.is("U1", "ada")
	_ = d.is("U2", "oidc:grace@x")
	d.later(time.Hour)
	_ = d.is("U1", "ada")
	_ = d.is("U2", "")
	left := grace()
	left.Groups = []string{"guests"}
	if err := d.SignedIn(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	if who, err := d.Of(t.Context(), "T1", "U2"); err != nil || len(who.Groups) != 1 || who.Groups[0] != "guests" {
		t.Errorf("after a new sign-in: %+v, %v", who, err)
	}
	old := d.keys[0]
	d.keys[0].Expires = d.clock()
	d.reopen()
	_ = d.is("U1", "")
	d.keys[0].Expires = time.Time{}
	_, d.keys[0].Hash = authn.Generate() // another key with the same name
	d.reopen()
	_ = d.is("U1", "")
	d.keys[0] = old
	d.keys[0].Groups = []string{"other"}
	d.reopen()
	if who, err := d.Of(t.Context(), "T1", "U1"); err != nil || len(who.Groups) != 1 || who.Groups[0] != "other" {
		t.Errorf("groups are not those of the configuration: %+v, %v", who, err)
	}
	d.keys = d.keys[1:]
	d.reopen()
	_ = d.is("U1", "")
}

func TestLinkIsInactiveWithoutItsTenant(t *testing.T) {
	d := open(t)
	rita := grace()
	rita.Tenant = "red"
	d.keys[0].Tenant = "red"
	d.reopen()
	byKey := schema.Principal{Name: "ada", Tenant: "red"}
	d.link(byKey, "U1")
	d.link(rita, "U2")
	for _, c := range []struct {
		of     settings.Tenants
		counts bool
	}{{nil, true}, {settings.Tenants{"red": {}}, true}, {settings.Tenants{"blue": {}}, false}, {settings.Tenants{"red": {}, "blue": {}}, true}} {
		d.of = c.of
		d.reopen()
		for user, name := range map[string]string{"U1": "ada", "U2": "oidc:grace@x"} {
			if c.counts {
				_ = d.is(user, name)
			} else if err := d.is(user, ""); schema.KindOf(err) != schema.KindForbidden || !strings.Contains(err.Error(), "section tenants") {
				t.Errorf("%s is told: %v", user, err)
			}
		}
	}
}

func TestEitherSideRemovesTheLinkAndEachHasOne(t *testing.T) {
	d := open(t)
	d.link(ada(), "U1")
	d.link(ada(), "U2")
	_ = d.is("U1", "")
	_ = d.is("U2", "ada")
	if err := d.Remove(t.Context(), ada()); err != nil {
		t.Fatal(err)
	}
	_ = d.is("U2", "")
	d.link(ada(), "U2")
	if err := d.RemoveUser(t.Context(), "T1", "U2"); err != nil {
		t.Fatal(err)
	}
	_ = d.is("U2", "")
	if _, ok := d.Connected(ada()); ok {
		t.Error("the page still shows a link")
	}
	d.link(grace(), "U2")
	_ = d.is("U2", "oidc:grace@x")
}
