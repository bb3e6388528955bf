package approver_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/callyard/callyard/internal/approver"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/internal/webhook"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Operators list approval events that could not be delivered, and send them again.
func TestFailedDeliveriesOfApprovalEventsAreListedAndSentAgain(t *testing.T) {
	srv := bustest.Start(t)
	var works atomic.Bool
	delivered := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !works.Load() {
			w.WriteHeader(http.StatusGone) // the sender gives up at once
			return
		}
		delivered <- r.Header.Get("Webhook-Id")
	}))
	t.Cleanup(receiver.Close)
	secrets := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(secrets, []byte("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	key := func(name string, tenant schema.TenantID, groups ...string) authn.Key {
		secret, hash := authn.Generate()
		keys[name] = secret
		return authn.Key{Name: name, Tenant: tenant, Groups: groups, Hash: hash}
	}
	conn := srv.Connect(t, "approver")
	l, desk := partsOn(t, srv)
	record, err := audit.Open(t.Context(), conn, audit.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(record.Close)
	a, err := start(t, func(o *approver.Options) {
		c := &o.Config
		c.Keys = []authn.Key{key("olga", "", "operators"), key("ada", "", "ops"), key("rita", "red", "operators")}
		c.Notify.URLs, c.Notify.SecretsFile, c.Notify.AllowPrivate, c.Notify.AdminGroups = []string{receiver.URL + "/s"}, secrets, true, []string{"operators"}
		o.Conn, o.Ledger, o.Desk, o.Audit = conn, l, desk, record
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, a) })
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	ask := func(name, method, path string, to any) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, a.Base()+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", keys[name])
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err == nil && to != nil {
			err = json.Unmarshal(body, to)
		}
		if err != nil {
			t.Fatalf("%s %s: %v: %s", method, path, err, body)
		}
		return resp.StatusCode
	}
	if _, err := desk.Open(t.Context(), &schema.Call{ID: schema.NewCallID(), Server: "s", Tool: "t", Arguments: []byte(`{}`), Principal: schema.Principal{Name: "agent"}}, nil, &risk.Assessment{Level: 2, Approval: &risk.Approval{By: risk.ByGroups, Groups: []string{"ops"}, Needed: 1, Expires: 3600e9}}, ""); err != nil {
		t.Fatal(err)
	}
	var list webhook.EntryList
	polltest.Until(t, "the delivery is given up", func() bool {
		return ask("olga", "GET", "/webhooks/deliveries", &list) == http.StatusOK && list.Total == 1
	})
	d := list.Deliveries[0]
	if d.Type != "approval.asked" || d.State != "dead" || d.Reason == "" || d.URL != receiver.URL+"/s" {
		t.Errorf("the delivery is %+v", d)
	}

	retry := "/webhooks/deliveries/" + d.ID + "/retry"
	for _, c := range []struct {
		name, method, path string
		want               int
	}{
		{"ada", "GET", "/webhooks/deliveries", http.StatusForbidden},
		{"ada", "POST", retry, http.StatusForbidden},
		{"rita", "POST", retry, http.StatusNotFound}, // another tenant
		{"olga", "POST", "/webhooks/deliveries/evt_none/retry", http.StatusNotFound},
		{"olga", "GET", "/webhooks/deliveries?state=gone", http.StatusBadRequest},
		{"olga", "GET", "/webhooks/deliveries?limit=0", http.StatusBadRequest},
		{"olga", "GET", "/webhooks/deliveries?cursor=x", http.StatusBadRequest},
	} {
		if got := ask(c.name, c.method, c.path, nil); got != c.want {
			t.Errorf("%s %s of %s: %d, want %d", c.method, c.path, c.name, got, c.want)
		}
	}
	if ask("rita", "GET", "/webhooks/deliveries", &list); list.Total != 0 {
		t.Errorf("another tenant sees %+v", list)
	}

	works.Store(true)
	var again webhook.Entry
	if status := ask("olga", "POST", retry, &again); status != http.StatusOK || again.State != "waiting" {
		t.Fatalf("%d %+v", status, again)
	}
	if got := <-delivered; got != d.ID {
		t.Errorf("%s was delivered, not %s", got, d.ID)
	}
	polltest.Until(t, "nothing is left", func() bool {
		return ask("olga", "GET", "/webhooks/deliveries", &list) == http.StatusOK && list.Total == 0
	})

	if err := record.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, _, err := record.Read(t.Context(), schema.AllTenants(), audit.Filter{Kinds: []audit.Kind{audit.ActBegun, audit.ActEnded}, Limit: 1000}, "")
	if err != nil {
		t.Fatal(err)
	}
	var acts []string
	for i := range page {
		acts = append(acts, string(page[i].Kind)+" "+page[i].By+" "+page[i].Outcome)
	}
	want := []string{"act-begun rita ", "act-ended rita refused", "act-begun olga ", "act-ended olga refused", "act-begun olga ", "act-ended olga succeeded"}
	if !slices.Equal(acts, want) {
		t.Errorf("the audit record has %q, want %q", acts, want)
	}
}
