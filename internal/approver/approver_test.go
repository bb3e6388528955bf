package approver_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/approver"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parts(t *testing.T) (*ledger.Ledger, *approval.Desk) {
	t.Helper()
	conn := bustest.Start(t).Connect(t, "approver")
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
	o := approver.Options{Config: approver.Defaults(), Log: slog.New(slog.DiscardHandler), Version: "test", Failed: make(chan error, 1)}
	o.Config.Listen, o.Config.DrainDelay = "127.0.0.1:0", 100*time.Millisecond
	o.Ledger, o.Desk = parts(t)
	if change != nil {
		change(&o)
	}
	return approver.Start(t.Context(), o)
}

func stop(t *testing.T, a *approver.Approver) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
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
	a, err := start(t, func(o *approver.Options) { o.Config.DrainDelay = 500 * time.Millisecond })
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
	// A page with live updates is open, and must not hold the stop up.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.Addr()+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop(t, a) }()
	for a.Ready() == nil {
		select {
		case <-stopped:
			t.Fatal("it stopped without saying so")
		default:
		}
	}
	if status, _ := get(t, c, "http://"+a.Addr()+"/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("ready while it drains: %d", status)
	}
	<-stopped
	if _, err := io.ReadAll(stream.Body); err != nil {
		t.Errorf("the stream did not end as it should: %v", err)
	}
}

func TestAnApproverThatOthersCanReachWantsKeys(t *testing.T) {
	_, hash := authn.Generate()
	keys := []authn.Key{{Name: "ada", Hash: hash}}
	for what, c := range map[string]struct {
		change func(*approver.Config)
		names  string // what the refusal names; empty: it starts
	}{
		"everywhere":            {func(c *approver.Config) { c.Listen = "0.0.0.0:0" }, "keys"},
		"a public address":      {func(c *approver.Config) { c.PublicURL = "https://approve.example" }, "keys"},
		"with keys":             {func(c *approver.Config) { c.Listen, c.Keys = "0.0.0.0:0", keys }, ""},
		"a path":                {func(c *approver.Config) { c.PublicURL = "http://127.0.0.1/x" }, "public_url"},
		"another scheme":        {func(c *approver.Config) { c.PublicURL = "ftp://127.0.0.1" }, "public_url"},
		"no lifetime":           {func(c *approver.Config) { c.SessionLifetime = 0 }, "session_lifetime"},
		"local groups and keys": {func(c *approver.Config) { c.Keys, c.LocalGroups = keys, []string{"ops"} }, "local_groups"},
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

func TestSilenceBecomesANoWithoutAnybodyLooking(t *testing.T) {
	var l *ledger.Ledger
	var d *approval.Desk
	a, err := start(t, func(o *approver.Options) { l, d = o.Ledger, o.Desk })
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, a)
	ended := make(chan *ledger.Approval, 16)
	defer l.Watch(func(a *ledger.Approval) {
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
	case <-time.After(10 * time.Second):
		t.Error("it still waits")
	}
}

func TestAPageHasTheAddressThatPeopleReach(t *testing.T) {
	for want, got := range map[string]string{
		"https://approve.example/a/appr_1": approver.PageURL("https://approve.example/", "127.0.0.1:8081", "appr_1"),
		"http://127.0.0.1:8081/a/appr_1":   approver.PageURL("", "127.0.0.1:8081", "appr_1"),
		"http://127.0.0.1:8081/":           approver.PageURL("", "127.0.0.1:8081", ""),
	} {
		if got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}
