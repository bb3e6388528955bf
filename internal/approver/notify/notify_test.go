package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/approver/notify"
	"github.com/callyard/callyard/internal/kit/logtest"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type testNotifier struct {
	t      *testing.T
	conn   *bus.Conn
	ledger *ledger.Ledger
	desk   *approval.Desk
	// tenants maps receivers to tenants; nil means that all receivers serve all tenants.
	tenants *tenants.Book
}

func build(t *testing.T) *testNotifier {
	t.Helper()
	h := &testNotifier{t: t, conn: bustest.Start(t).Connect(t, "approver")}
	var err error
	if h.ledger, err = ledger.Open(t.Context(), h.conn, ledger.Options{Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.ledger.Close)
	h.desk = approval.New(approval.Options{Ledger: h.ledger, Log: slog.New(slog.DiscardHandler)})
	return h
}

func (h *testNotifier) hold(change func(*risk.Approval)) *ledger.Approval {
	h.t.Helper()
	return h.holdOf("", change)
}

func (h *testNotifier) holdOf(tenant schema.TenantID, change func(*risk.Approval)) *ledger.Approval {
	h.t.Helper()
	rule := &risk.Approval{By: risk.ByGroups, Groups: []string{"ops"}, Needed: 1, Expires: time.Minute, EscalateTo: []string{"board"}}
	if change != nil {
		change(rule)
	}
	held, err := h.desk.Open(h.t.Context(), &schema.Call{ID: schema.NewCallID(), Server: "s", Tool: "t", Arguments: []byte(`{"secret":"hunter2"}`), Principal: schema.Principal{Name: "agent", Tenant: tenant}}, nil, &risk.Assessment{Level: 2, Approval: rule}, "")
	if err != nil {
		h.t.Fatal(err)
	}
	return held.Approval
}

func (h *testNotifier) decide(a *ledger.Approval, kind ledger.DecisionKind, reason string) {
	h.t.Helper()
	if _, err := h.desk.Decide(h.t.Context(), a.ID, approval.Answer{Kind: kind, Digest: a.Binding.ArgumentsDigest, Reason: reason}, schema.Principal{Name: "ada", Groups: []string{"ops"}}, "web"); err != nil {
		h.t.Fatal(err)
	}
}

// failingChannel is a channel of places that fail on demand.
type failingChannel struct {
	mu     sync.Mutex
	places []string
	shown  map[string][]ledger.State // by place and approval
	fail   map[string]error          // by place, or place and approval
	hold   map[string]chan struct{}
	tries  map[string]int
}

func newFailingChannel(places ...string) *failingChannel {
	return &failingChannel{places: places, shown: map[string][]ledger.State{}, fail: map[string]error{}, hold: map[string]chan struct{}{}, tries: map[string]int{}}
}

func (w *failingChannel) Places(*ledger.Approval) []string { return w.places }

func (w *failingChannel) Show(ctx context.Context, place string, a *ledger.Approval) error {
	w.mu.Lock()
	hold := w.hold[place]
	w.tries[place]++
	w.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range []string{place, place + string(a.ID)} {
		if err := w.fail[key]; err != nil {
			return err
		}
	}
	w.shown[place+string(a.ID)] = append(w.shown[place+string(a.ID)], a.State)
	return nil
}

func (w *failingChannel) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *failingChannel) last(place string, a *ledger.Approval) ledger.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.shown[place+string(a.ID)]; len(s) > 0 {
		return s[len(s)-1]
	}
	return ""
}

func start(h *testNotifier, f notify.Channel) *notify.Feed {
	return notify.Start(notify.Options{Ledger: h.ledger, Channel: f, Name: "walls", Log: slog.New(slog.DiscardHandler)})
}

func TestSlowChannelDelaysNoOthers(t *testing.T) {
	h, w := build(t), newFailingChannel("slow", "quick")
	gate := make(chan struct{})
	w.hold["slow"] = gate
	defer start(h, w).Close()
	a := h.hold(nil)
	polltest.Until(t, "the quick one shows it", func() bool { return w.last("quick", a) == ledger.Pending })
	h.decide(a, ledger.Deny, "")
	polltest.Until(t, "the quick one shows the answer", func() bool { return w.last("quick", a) == ledger.Denied })
	if w.last("slow", a) != "" {
		t.Fatal("the slow one is not slow")
	}
	w.set(func() { delete(w.hold, "slow") })
	close(gate)
	polltest.Until(t, "the slow one shows the newest", func() bool { return w.last("slow", a) == ledger.Denied })
}

func TestCloseWaitsForNotificationInProgress(t *testing.T) {
	h, w := build(t), newFailingChannel("p")
	gate := make(chan struct{})
	w.hold["p"] = gate
	f := start(h, w)
	a := h.hold(nil)
	polltest.Until(t, "it is being shown", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.tries["p"] == 1 })
	closed := make(chan struct{})
	go func() {
		f.Close()
		close(closed)
	}()
	select {
	case <-closed:
		t.Error("the feed closed while a notification was under way")
	case <-time.After(200 * time.Millisecond): // give Close time to start waiting
	}
	close(gate)
	<-closed
	if w.last("p", a) != ledger.Pending {
		t.Error("the notification was interrupted; its note is missing, and it will be sent again")
	}
}

func TestRecoveredChannelShowsTheLatestState(t *testing.T) {
	h, w := build(t), newFailingChannel("p")
	w.fail["p"] = errors.New("down")
	defer start(h, w).Close()
	a, b := h.hold(nil), h.hold(nil)
	h.decide(a, ledger.Approve, "")
	polltest.Until(t, "it is tried again", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.tries["p"] > 5 })
	w.set(func() { delete(w.fail, "p") })
	well := time.Now()
	polltest.Until(t, "both are shown", func() bool { return w.last("p", a) == ledger.Approved && w.last("p", b) == ledger.Pending })
	if took := time.Since(well); took > 30*time.Second {
		t.Errorf("right after %v", took)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.shown["p"+string(a.ID)]); n != 1 {
		t.Errorf("shown %d times: of what was missed the newest counts", n)
	}
}

func TestDelayedNotificationDoesNotBlockOthers(t *testing.T) {
	h, w := build(t), newFailingChannel("p")
	a := h.hold(nil)
	w.fail["p"+string(a.ID)] = &notify.Wait{For: 50 * time.Millisecond, Alone: true, Err: errors.New("later")}
	defer start(h, w).Close()
	b, c := h.hold(nil), h.hold(nil)
	w.set(func() { w.fail["p"+string(c.ID)] = &notify.Never{Err: errors.New("unfit")} })
	polltest.Until(t, "the other is shown", func() bool { return w.last("p", b) != "" })
	w.set(func() { delete(w.fail, "p"+string(a.ID)) })
	polltest.Until(t, "it is shown", func() bool { return w.last("p", a) != "" })
}

// Otherwise only those who wait for the notification would notice.
func TestApprovalThatCannotBeShownIsLoggedOnce(t *testing.T) {
	h, w := build(t), newFailingChannel("p")
	a := h.hold(nil)
	w.fail["p"+string(a.ID)] = &notify.Wait{For: time.Millisecond, Alone: true, Err: errors.New("its arguments are damaged")}
	var said logtest.Log
	defer notify.Start(notify.Options{Ledger: h.ledger, Channel: w, Name: "walls", Log: slog.New(slog.NewTextHandler(&said, nil))}).Close()
	polltest.Until(t, "many attempts", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.tries["p"] >= 50
	})
	if n := said.Count("its arguments are damaged"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, said.String())
	}
}

func TestLongWaitOfAnApprovalIsLoggedAtOnce(t *testing.T) {
	h, w := build(t), newFailingChannel("p")
	a := h.hold(nil)
	w.fail["p"+string(a.ID)] = &notify.Wait{For: time.Hour, Alone: true, Err: errors.New("a new code")}
	var said logtest.Log
	defer notify.Start(notify.Options{Ledger: h.ledger, Channel: w, Name: "walls", Log: slog.New(slog.NewTextHandler(&said, nil))}).Close()
	polltest.Until(t, "it is logged", func() bool { return said.Count("a new code") == 1 })
}

func TestFeedBeginsWithExistingApprovals(t *testing.T) {
	h, w := build(t), newFailingChannel("p")
	heard := make(chan struct{}, 10)
	defer h.ledger.Watch(schema.AllTenants(), func(a *ledger.Approval) {
		if a.State == ledger.Denied {
			heard <- struct{}{}
		}
	})()
	a := h.hold(nil)
	h.decide(a, ledger.Deny, "")
	<-heard // no further notification arrives
	defer start(h, w).Close()
	polltest.Until(t, "it is shown", func() bool { return w.last("p", a) == ledger.Denied })
}

// told is a received webhook.
type told struct {
	id   string
	Type string `json:"type"`
	Data struct {
		ID       schema.ApprovalID `json:"id"`
		State    string            `json:"state"`
		URL      string            `json:"url"`
		Decision *struct {
			Kind string `json:"kind"`
			By   struct {
				Name string `json:"name"`
			} `json:"by"`
		} `json:"decision"`
	} `json:"data"`
}

type receiver struct {
	*httptest.Server
	t    *testing.T
	mu   sync.Mutex
	all  []told
	down bool
}

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{t: t}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		hook, hookErr := standard.NewWebhook(secret)
		if err = errors.Join(err, hookErr); err == nil {
			err = hook.Verify(body, q.Header)
		}
		m := told{id: q.Header.Get("webhook-id")}
		if err = errors.Join(err, json.Unmarshal(body, &m)); err != nil {
			t.Error(err)
		}
		if strings.Contains(string(body), "hunter2") || strings.Contains(string(body), "because") {
			t.Errorf("it tells too much: %s", body)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.all = append(r.all, m)
	}))
	t.Cleanup(r.Close)
	return r
}

// types returns the event types received for an approval, each once, in the order of arrival.
func (r *receiver) types(a *ledger.Approval) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	seen := map[string]bool{}
	for _, m := range r.all {
		if m.Data.ID == a.ID && !seen[m.id] {
			seen[m.id] = true
			all = append(all, m.Type)
		}
	}
	slices.Sort(all)
	return all
}

func (h *testNotifier) webhooks(c settings.Notify) (stop func()) {
	h.t.Helper()
	w, err := notify.OpenWebhooks(h.t.Context(), c, h.tenants, h.conn, func(id schema.ApprovalID) string { return "http://page/a/" + string(id) }, slog.New(slog.DiscardHandler))
	if err != nil {
		h.t.Fatal(err)
	}
	feed := start(h, w)
	return func() {
		feed.Close()
		if err := w.Close(context.Background()); err != nil {
			h.t.Error(err)
		}
	}
}

func section(t *testing.T, urls ...string) settings.Notify {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(file, []byte("# of the tests\n"+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return settings.Notify{URLs: urls, SecretsFile: file, AllowPrivate: true}
}

func TestWebhooksGetSignedEvents(t *testing.T) {
	h, r := build(t), receive(t)
	c := section(t, r.URL+"/a", r.URL+"/b")
	if f := notify.Check(c); len(f) > 0 {
		t.Fatal(f)
	}
	stop := h.webhooks(c)
	a := h.hold(func(rule *risk.Approval) { rule.Needed = 2 })
	if _, err := h.ledger.Change(t.Context(), schema.DefaultTenant, a.ID, func(a *ledger.Approval) error { a.Escalated = time.Now().UTC(); return nil }); err != nil {
		t.Fatal(err)
	}
	h.decide(a, ledger.Approve, "because")
	h.decide(a, ledger.Revoke, "")
	want := []string{"approval.asked", "approval.asked", "approval.decided", "approval.decided", "approval.escalated", "approval.escalated", "approval.revoked", "approval.revoked"}
	polltest.Until(t, "both are told of everything", func() bool { return slices.Equal(r.types(a), want) })

	b := h.hold(nil)
	h.decide(b, ledger.Approve, "")
	if _, err := h.desk.Claim(t.Context(), schema.DefaultTenant, b.ID, "door"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.desk.Finish(t.Context(), schema.DefaultTenant, b.ID, &schema.Result{Body: []byte(`{"hunter2":1}`)}, nil); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the end is told to both", func() bool { return len(r.types(b)) == 6 && slices.Contains(r.types(b), "approval.ended") })
	r.mu.Lock()
	for _, m := range r.all {
		if schema.ApprovalID(m.Data.URL) != "http://page/a/"+m.Data.ID {
			t.Errorf("%+v", m)
		}
		if m.Type == "approval.decided" && (m.Data.Decision == nil || m.Data.Decision.By.Name != "ada") {
			t.Errorf("%+v", m)
		}
	}
	n := len(r.all)
	r.mu.Unlock()
	stop()

	// Events during a downtime are sent after the start, and none is sent twice.
	late := h.hold(func(rule *risk.Approval) { rule.Expires, rule.EscalateTo = time.Millisecond, nil })
	polltest.Until(t, "it expires", func() bool {
		_, err := h.desk.Reconcile(t.Context(), func(string) bool { return true })
		is, getErr := h.ledger.Current(t.Context(), schema.AllTenants(), late.ID)
		return err == nil && getErr == nil && is.State == ledger.Expired
	})
	stop = h.webhooks(c)
	defer stop()
	polltest.Until(t, "it is told", func() bool { return slices.Contains(r.types(late), "approval.expired") })
	polltest.Until(t, "all of it", func() bool { return len(r.types(late)) == 4 })
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) != n+4 {
		t.Errorf("%d came after the start, for 4 that are new", len(r.all)-n)
	}
}

func TestWebhooksGetApprovalsOfTheirTenantOnly(t *testing.T) {
	h, own, other, platform := build(t), receive(t), receive(t), receive(t)
	h.tenants = tenants.New(settings.Tenants{"red": {Notify: settings.TenantNotify{URLs: []string{own.URL}}}, "blue": {Notify: settings.TenantNotify{URLs: []string{other.URL}}}, "quiet": {}})
	defer h.webhooks(section(t, platform.URL))()
	of := map[schema.TenantID]*ledger.Approval{}
	for _, tenant := range []schema.TenantID{"quiet", "red", "blue", ""} {
		of[tenant] = h.holdOf(tenant, nil)
	}
	for tenant, r := range map[schema.TenantID]*receiver{"red": own, "blue": other, "": platform} {
		polltest.Until(t, "its own receiver is told", func() bool { return len(r.types(of[tenant])) > 0 })
	}
	for r, tenant := range map[*receiver]schema.TenantID{own: "red", other: "blue", platform: ""} {
		r.mu.Lock()
		for _, m := range r.all {
			if m.Data.ID != of[tenant].ID {
				t.Errorf("the receiver of %q is told of %s", tenant, m.Data.ID)
			}
		}
		r.mu.Unlock()
	}
}

func TestWebhooksGetSelectedEventsOnly(t *testing.T) {
	h, r := build(t), receive(t)
	c := section(t, r.URL)
	c.Events = []string{notify.Decided}
	defer h.webhooks(c)()
	a := h.hold(nil)
	h.decide(a, ledger.Deny, "")
	polltest.Until(t, "it is told", func() bool { return len(r.types(a)) > 0 })
	if got := r.types(a); !slices.Equal(got, []string{"approval.decided"}) {
		t.Error(got)
	}
}

func TestCallerConfirmationsSendNoWebhooks(t *testing.T) {
	h, r := build(t), receive(t)
	defer h.webhooks(section(t, r.URL))()
	mine := h.hold(func(rule *risk.Approval) { *rule = risk.Approval{By: risk.ByCaller, Expires: time.Minute} })
	a := h.hold(nil)
	polltest.Until(t, "the other is told", func() bool { return len(r.types(a)) > 0 })
	if got := r.types(mine); len(got) > 0 {
		t.Error(got)
	}
}

func TestInvalidWebhookSettingsAreRefused(t *testing.T) {
	good := section(t, "https://example.com/hook")
	for key, change := range map[string]func(*settings.Notify){
		"urls":         func(c *settings.Notify) { c.URLs = nil },
		"urls[0]":      func(c *settings.Notify) { c.URLs[0] = "ftp://example.com" },
		"urls[1]":      func(c *settings.Notify) { c.URLs = append(c.URLs, c.URLs[0]) },
		"events[0]":    func(c *settings.Notify) { c.Events = []string{"approval.done"} },
		"secrets_file": func(c *settings.Notify) { c.SecretsFile = "" },
	} {
		c := good
		c.URLs = slices.Clone(good.URLs)
		change(&c)
		if f := append(c.Validate(), notify.Check(c)...); len(f) != 1 || f[0].Path != key {
			t.Errorf("%s: %v", key, f)
		}
	}
	if f := (settings.Notify{}).Validate(); len(f) > 0 {
		t.Error(f)
	}
}
