package approver_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/approver"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parts(t *testing.T) (*ledger.Ledger, *approval.Desk) {
	t.Helper()
	return partsOn(t, bustest.Start(t))
}

func partsOn(t *testing.T, srv *bustest.Server) (*ledger.Ledger, *approval.Desk) {
	t.Helper()
	conn := srv.Connect(t, "approver")
	log := slog.New(slog.DiscardHandler)
	l, err := ledger.Open(t.Context(), conn, ledger.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l, approval.New(approval.Options{Ledger: l, Log: log})
}

func start(t *testing.T, change func(*approver.Options)) (*approver.Approver, error) {
	t.Helper()
	o := approver.Options{Config: settings.ApproverDefaults(), Log: slog.New(slog.DiscardHandler), Version: "test", Failed: make(chan error, 1)}
	o.Config.Listen, o.Config.DrainDelay = "127.0.0.1:0", 100*time.Millisecond
	if change != nil {
		change(&o)
	}
	if o.Ledger == nil {
		o.Ledger, o.Desk = parts(t)
	}
	return approver.Start(t.Context(), o)
}

func stop(t *testing.T, a *approver.Approver) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := a.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestAnApproverServesFromItsStartToItsStop(t *testing.T) {
	a, err := start(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	for _, path := range []string{"/", "/readyz", "/livez", "/approvals"} {
		if status, body := get(t, c, "http://"+a.Addr()+path); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	// An open page with live updates must not delay the stop.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.Addr()+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	stop(t, a)
	if _, err := io.ReadAll(stream.Body); err != nil {
		t.Errorf("the stream did not end as it should: %v", err)
	}
}

func TestAnApproverThatDrainsIsNotReady(t *testing.T) {
	a, err := start(t, func(o *approver.Options) { o.Config.DrainDelay = time.Hour })
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = a.Stop(ctx) // the test ends the delay, and the grace period with it
	}()
	polltest.Until(t, "it drains", func() bool { return a.Ready() != nil })
	if status, _ := get(t, c, "http://"+a.Addr()+"/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("ready while it drains: %d", status)
	}
	cancel()
	<-stopped
}

func TestReachableApproverRequiresKeysOrSignIn(t *testing.T) {
	_, hash := authn.Generate()
	keys := []authn.Key{{Name: "ada", Hash: hash}}
	people := settings.OIDCDefaults()
	people.Issuer, people.ClientID = "http://127.0.0.1:1", "client" // unreachable, which must not prevent the start
	for what, c := range map[string]struct {
		change func(*settings.Approver)
		names  string // a part of the error; empty means that it starts
	}{
		"everywhere":                      {func(c *settings.Approver) { c.Listen = "0.0.0.0:0" }, "keys"},
		"a public address":                {func(c *settings.Approver) { c.PublicURL = "https://approve.example" }, "keys"},
		"with keys":                       {func(c *settings.Approver) { c.Listen, c.Keys = "0.0.0.0:0", keys }, ""},
		"a path":                          {func(c *settings.Approver) { c.PublicURL = "http://127.0.0.1/x" }, "public_url"},
		"another scheme":                  {func(c *settings.Approver) { c.PublicURL = "ftp://127.0.0.1" }, "public_url"},
		"no lifetime":                     {func(c *settings.Approver) { c.SessionLifetime = 0 }, "session_lifetime"},
		"a key with the name of a person": {func(c *settings.Approver) { c.Keys = []authn.Key{{Name: "oidc:ada@x", Hash: hash}} }, "keys[0].name"},
		"people, everywhere": {func(c *settings.Approver) {
			c.Listen, c.PublicURL, c.OIDC = "0.0.0.0:0", "https://approve.example", people
		}, ""},
		"people, and no way back": {func(c *settings.Approver) { c.Listen, c.OIDC = "0.0.0.0:0", people }, "public_url"},
		"people, on loopback":     {func(c *settings.Approver) { c.OIDC = people }, ""},
		"people, another way back": {func(c *settings.Approver) {
			c.PublicURL, c.OIDC = "https://approve.example", people
			c.OIDC.RedirectURL = "https://elsewhere.example/sign-in/callback"
		}, "oidc.redirect_url"},
		"people, wrongly":         {func(c *settings.Approver) { c.OIDC = people; c.OIDC.ClientID = "" }, "oidc.client_id"},
		"local groups and people": {func(c *settings.Approver) { c.OIDC, c.LocalGroups = people, []string{"ops"} }, "local_groups"},
		"no idle time":            {func(c *settings.Approver) { c.SessionIdle = 0 }, "session_idle"},
		"local groups and keys":   {func(c *settings.Approver) { c.Keys, c.LocalGroups = keys, []string{"ops"} }, "local_groups"},
	} {
		a, err := start(t, func(o *approver.Options) { c.change(&o.Config) })
		if err == nil {
			stop(t, a)
		}
		if (err == nil) != (c.names == "") || err != nil && !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestApprovalsExpireWithoutAnyRequest(t *testing.T) {
	l, d := parts(t)
	a, err := start(t, func(o *approver.Options) { o.Ledger, o.Desk = l, d })
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, a)
	ended := make(chan *ledger.Approval, 16)
	defer l.Watch(schema.AllTenants(), func(a *ledger.Approval) {
		if a.State.Ended() {
			ended <- a
		}
	})()
	call := &schema.Call{ID: schema.NewCallID(), Server: "s", Tool: "t", Arguments: []byte(`{}`), Principal: schema.Principal{Name: "agent"}}
	rule := &risk.Approval{By: risk.ByGroups, Groups: []string{"ops"}, Needed: 1, Expires: 300 * time.Millisecond}
	if _, err := d.Open(t.Context(), call, nil, &risk.Assessment{Level: 2, Approval: rule}, ""); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-ended:
		if got.State != ledger.Expired {
			t.Errorf("it is %s", got.State)
		}
	case <-time.After(time.Minute):
		t.Error("it still waits")
	}
}

func TestPendingApprovalsSurviveRestartAndSessionsEnd(t *testing.T) {
	srv := bustest.Start(t)
	key, hash := authn.Generate()
	run := func() (*approver.Approver, *approval.Desk) {
		t.Helper()
		l, d := partsOn(t, srv)
		a, err := start(t, func(o *approver.Options) {
			o.Ledger, o.Desk, o.Config.Keys = l, d, []authn.Key{{Name: "ada", Groups: []string{"ops"}, Hash: hash}}
		})
		if err != nil {
			t.Fatal(err)
		}
		return a, d
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Jar: jar, Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	signedIn := func(a *approver.Approver) (page string) {
		t.Helper()
		_, page = get(t, c, "http://"+a.Addr()+"/")
		return page
	}

	first, d := run()
	call := &schema.Call{ID: schema.NewCallID(), Server: "files", Tool: "delete", Arguments: []byte(`{}`), Principal: schema.Principal{Name: "agent"}}
	rule := &risk.Approval{By: risk.ByGroups, Groups: []string{"ops"}, Needed: 1, Expires: time.Minute}
	held, err := d.Open(t.Context(), call, nil, &risk.Assessment{Level: 2, Approval: rule}, "")
	if err != nil {
		t.Fatal(err)
	}
	token := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(signedIn(first))
	if token == nil {
		t.Fatal("there is no form to sign in")
	}
	resp, err := c.PostForm("http://"+first.Addr()+"/sign-in", url.Values{"token": {token[1]}, "key": {key}, "next": {"/"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if page := signedIn(first); !strings.Contains(page, string(held.Approval.ID)) {
		t.Fatalf("signed in, and it is not there: %s", page)
	}
	stop(t, first)

	second, _ := run()
	defer stop(t, second)
	if page := signedIn(second); strings.Contains(page, string(held.Approval.ID)) || !strings.Contains(page, `action="/sign-in"`) {
		t.Errorf("the session of before still counts: %s", page)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+second.Addr()+"/approvals/"+string(held.Approval.ID)+"/decisions",
		strings.NewReader(`{"kind":"approve","digest":"`+held.Approval.Binding.ArgumentsDigest+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	if resp, err = c.Do(r); err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK || !strings.Contains(string(body), `"state":"approved"`) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestPageURLUsesThePublicAddress(t *testing.T) {
	for want, got := range map[string]string{
		"https://approve.example/a/appr_1": approver.PageURL(settings.Approver{PublicURL: "https://approve.example/"}, "127.0.0.1:8081", "appr_1"),
		"http://127.0.0.1:8081/a/appr_1":   approver.PageURL(settings.Approver{}, "127.0.0.1:8081", "appr_1"),
		"https://127.0.0.1:8081/a/appr_1":  approver.PageURL(settings.Approver{CertFile: "tls.crt"}, "127.0.0.1:8081", "appr_1"),
		"http://127.0.0.1:8081/":           approver.PageURL(settings.Approver{}, "127.0.0.1:8081", ""),
	} {
		if got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}
