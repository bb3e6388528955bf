package slack_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/approver/slack"
	"github.com/callyard/callyard/internal/approver/slack/enrol"
	"github.com/callyard/callyard/internal/approver/slack/slacktest"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/kit/logtest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) {
	slack.RaiseTimeouts()
	goleak.VerifyTestMain(m)
}

const channel, board = "C0APPROVALS", "C0BOARD"

// definition is the definition of a tool with a secret argument.
const definition = `{"name":"deploy","inputSchema":{"type":"object","properties":{"target":{"type":"string"},"key":{"type":"string","writeOnly":true}}}}`

// fixture is an approver with Slack, without its pages.
type fixture struct {
	t      *testing.T
	slack  *slacktest.Server
	config settings.Slack
	conn   *bus.Conn
	ledger *ledger.Ledger
	desk   *approval.Desk
	book   *enrol.Book
	keys   []authn.Key
	app    *slack.App
	log    *logtest.Log
	tenant schema.TenantID // tenant of the held calls
	of     settings.Tenants
	http   *httptest.Server
	client *http.Client
	mu     sync.RWMutex
}

func open(t *testing.T, change func(*settings.Slack)) *fixture {
	t.Helper()
	r := &fixture{t: t, slack: slacktest.Start(t), config: settings.SlackDefaults(), log: new(logtest.Log)}
	r.config.BotToken, r.config.SigningSecret = slacktest.BotToken, slacktest.SigningSecret
	r.config.TeamID, r.config.AppID, r.config.APIURL = slacktest.Team, slacktest.App, r.slack.URL
	r.config.Channels = map[string]string{"ops": channel, "board": board}
	if change != nil {
		change(&r.config)
	}
	if faults := r.config.Validate(); len(faults) > 0 {
		t.Fatal(faults)
	}
	for _, k := range []authn.Key{
		{Name: "ada", Owner: "ada@x", Groups: []string{"ops"}}, {Name: "bob", Groups: []string{"ops"}}, {Name: "eve", Groups: []string{"guests"}},
		{Name: "agent", Owner: "team", Groups: []string{"ops"}}, {Name: "gone", Groups: []string{"ops"}},
	} {
		_, k.Hash = authn.Generate()
		r.keys = append(r.keys, k)
	}
	r.conn = bustest.Start(t).Connect(t, "approver")
	var err error
	if r.ledger, err = ledger.Open(t.Context(), r.conn, ledger.Options{Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.ledger.Close)
	r.desk = approval.New(approval.Options{Ledger: r.ledger, Log: slog.New(slog.DiscardHandler)})
	r.book = r.openBook(r.keys)
	t.Cleanup(func() { r.book.Close() })
	for _, k := range r.keys {
		r.connect(k)
	}
	r.start()
	t.Cleanup(r.stop)
	r.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.RLock()
		defer r.mu.RUnlock()
		r.app.ServeHTTP(w, req)
	}))
	t.Cleanup(r.http.Close)
	r.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	t.Cleanup(r.client.CloseIdleConnections)
	return r
}

func (r *fixture) openBook(keys []authn.Key) *enrol.Book {
	r.t.Helper()
	known, err := authn.NewKeys(keys)
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := enrol.Open(r.t.Context(), enrol.Options{Conn: r.conn, Keys: known, SignInFor: time.Hour, Tenants: tenants.New(r.of), Page: func() string { return "http://page/slack" }})
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// userOf returns the Slack account of a person.
func userOf(name string) string { return "U0" + strings.ToUpper(name) }

func (r *fixture) connect(k authn.Key) {
	r.t.Helper()
	who := schema.Principal{Name: k.Name, Owner: k.Owner, Groups: k.Groups, Tenant: k.Tenant}
	code, _, err := r.book.Code(r.t.Context(), who)
	if err == nil {
		err = r.book.Typed(r.t.Context(), code, enrol.User{Team: slacktest.Team, ID: userOf(k.Name), Name: k.Name})
	}
	if err != nil {
		r.t.Fatal(err)
	}
	// The table is updated asynchronously.
	r.slack.Until(r.t, "the code is typed", func() bool { return len(r.book.Offered(who)) > 0 })
	if err := r.book.Accept(r.t.Context(), who, time.Now(), slacktest.Team, userOf(k.Name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *fixture) start() {
	r.t.Helper()
	app, err := slack.Open(r.t.Context(), slack.Options{
		Config: r.config, Desk: r.desk, Ledger: r.ledger, People: r.book, Conn: r.conn, Page: func(id schema.ApprovalID) string { return "http://page/a/" + string(id) },
		Log: slog.New(slog.NewTextHandler(r.log, nil)),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.app = app
}

func (r *fixture) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.app != nil {
		r.app.Close()
		r.app = nil
	}
}

// hold creates an approval for the group ops.
func (r *fixture) hold(level int, args string, change func(*risk.Approval)) *ledger.Approval {
	r.t.Helper()
	rule := &risk.Approval{By: risk.ByGroups, Groups: []string{"ops"}, Needed: 1, Expires: 10 * time.Minute, SlackLevel: 2}
	if change != nil {
		change(rule)
	}
	call := &schema.Call{ID: schema.NewCallID(), Server: "prod", Tool: "deploy", Arguments: []byte(args), Principal: schema.Principal{Name: "agent", Owner: "team", Tenant: r.tenant}, Timeout: time.Minute, ToolDigest: schema.Digest([]byte(definition))}
	held, err := r.desk.Open(r.t.Context(), call, []byte(definition), &risk.Assessment{Level: level, Reasons: []string{"it changes production"}, Approval: rule}, "")
	if err != nil {
		r.t.Fatal(err)
	}
	return held.Approval
}

// card waits for a card of the approval that satisfies fits.
func (r *fixture) card(in string, a *ledger.Approval, what string, fits func(slacktest.Message) bool) (found slacktest.Message) {
	r.t.Helper()
	r.slack.Until(r.t, "a card in "+in+" "+what, func() bool {
		for _, m := range r.slack.Messages(in) {
			if strings.Contains(m.Blocks, string(a.ID)) && fits(m) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

func anyCard(slacktest.Message) bool { return true }

func hasText(text string) func(slacktest.Message) bool {
	return func(m slacktest.Message) bool { return strings.Contains(m.Blocks, text) }
}

// send sends a request like Slack, and returns the status.
func (r *fixture) send(path string, body []byte, change func(*http.Request)) int {
	r.t.Helper()
	req := slacktest.Request(r.t, r.http.URL+path, body)
	if change != nil {
		change(req)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		r.t.Error(err)
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// click clicks a button of a card.
func (r *fixture) click(name string, m slacktest.Message, action string, n int) {
	r.t.Helper()
	value, text, ok := m.Button(action, n)
	if !ok {
		r.t.Fatalf("the card has no %s: %s", action, m.Blocks)
	}
	if status := r.send(slack.InteractionsPath, slacktest.Form(slacktest.Click(userOf(name), m, action, value, text)), nil); status != http.StatusOK {
		r.t.Fatalf("the click is answered with %d", status)
	}
}

// waitForMessage waits until a person receives a message with the text.
func (r *fixture) waitForMessage(name, text string) {
	r.t.Helper()
	r.slack.Until(r.t, fmt.Sprintf("%s is told %q", name, text), func() bool {
		for _, m := range r.slack.Ephemerals() {
			if m.User == userOf(name) && strings.Contains(m.Text, text) {
				return true
			}
		}
		return false
	})
}

func (r *fixture) now(a *ledger.Approval) *ledger.Approval {
	r.t.Helper()
	is, err := r.ledger.Current(r.t.Context(), schema.AllTenants(), a.ID)
	if err != nil {
		r.t.Fatal(err)
	}
	return is
}

func (r *fixture) decide(a *ledger.Approval, kind ledger.DecisionKind, name string) error {
	bound := r.now(a).Bound()
	_, err := r.desk.Decide(r.t.Context(), a.ID, approval.Answer{Kind: kind, Digest: bound.ArgumentsDigest}, schema.Principal{Name: name, Groups: []string{"ops"}}, "web")
	return err
}
