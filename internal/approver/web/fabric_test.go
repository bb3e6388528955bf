package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/approver/web"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// definition is the definition of a tool with a target and a number as arguments.
const definition = `{"name":"delete","description":"Deletes <b>things</b>.\u202e","annotations":{"destructiveHint":true},` +
	`"inputSchema":{"type":"object","properties":{"target":{"type":"string"},"n":{"type":"integer"}},"required":["target"],"additionalProperties":true}}`

// fabric is a desk with a ledger, and the pages and the API on top of it.
type fabric struct {
	t      *testing.T
	ledger *ledger.Ledger
	desk   *approval.Desk
	log    *bytes.Buffer
	keys   map[string]string // by name
	url    string
	nats   string // the address of the NATS server
	web    *web.Handler
}

// people returns the keys of a fabric with sign-in.
func people() []authn.Key {
	return []authn.Key{
		{Name: "ada", Owner: "ada@x", Groups: []string{"ops"}}, {Name: "bob", Groups: []string{"ops"}},
		{Name: "eve", Groups: []string{"guests"}}, {Name: "olga", Groups: []string{"auditors"}},
		{Name: "agent", Owner: "team", Groups: []string{"ops"}}, {Name: "agent-2", Owner: "team", Groups: []string{"ops"}},
		{Name: "team", Groups: []string{"ops"}}, {Name: "lead", Owner: "agent", Groups: []string{"ops"}},
		{Name: "solo", Groups: []string{"ops"}}, {Name: "solo-2", Owner: "solo", Groups: []string{"ops"}},
	}
}

func open(t *testing.T, keys []authn.Key, change func(*web.Options)) *fabric {
	t.Helper()
	return openAt(t, keys, func(_ string, o *web.Options) {
		if change != nil {
			change(o)
		}
	})
}

// openAt is like open, for changes that need the address of the pages.
func openAt(t *testing.T, keys []authn.Key, change func(url string, o *web.Options)) *fabric {
	t.Helper()
	srv := bustest.Start(t)
	conn := srv.Connect(t, "approver")
	f := &fabric{t: t, log: new(bytes.Buffer), keys: map[string]string{}, nats: srv.URL}
	var err error
	if f.ledger, err = ledger.Open(t.Context(), conn, ledger.Options{Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.ledger.Close)
	f.desk = approval.New(approval.Options{Ledger: f.ledger, Runner: "door", Log: slog.New(slog.DiscardHandler)})
	for i := range keys {
		f.keys[keys[i].Name], keys[i].Hash = authn.Generate()
	}
	table, err := authn.NewKeys(keys)
	if err != nil {
		t.Fatal(err)
	}
	o := web.Options{
		Desk: f.desk, Ledger: f.ledger, Keys: table, Observers: []string{"auditors"}, LocalGroups: []string{"ops"},
		Lifetime: time.Hour, FreshFor: time.Minute, ArgumentBytes: 1 << 20, Log: slog.New(slog.NewTextHandler(f.log, nil)),
	}
	s := httptest.NewUnstartedServer(nil)
	t.Cleanup(s.Close)
	f.url = "http://" + s.Listener.Addr().String()
	change(f.url, &o)
	if f.web, err = web.New(o); err != nil {
		t.Fatal(err)
	}
	s.Config.Handler = f.web
	s.Start()
	t.Cleanup(f.web.Close)
	return f
}

// hold creates an approval for the group ops.
func (f *fabric) hold(args string, who schema.Principal, change func(*risk.Approval)) *ledger.Approval {
	f.t.Helper()
	return f.holdTool(definition, args, who, change).Approval
}

// holdTool is like hold, with another definition of the tool.
func (f *fabric) holdTool(definition, args string, who schema.Principal, change func(*risk.Approval)) *approval.Held {
	f.t.Helper()
	rule := &risk.Approval{By: risk.ByGroups, Groups: []string{"ops"}, Needed: 1, Expires: 10 * time.Minute}
	if change != nil {
		change(rule)
	}
	call := &schema.Call{ID: schema.NewCallID(), Server: "files", Tool: "delete", Arguments: []byte(args), Principal: who, Timeout: time.Minute, ToolDigest: schema.Digest([]byte(definition))}
	held, err := f.desk.Open(f.t.Context(), call, json.RawMessage(definition), &risk.Assessment{Level: 2, Reasons: []string{"It deletes."}, Approval: rule, Version: "v1"}, "")
	if err != nil {
		f.t.Fatal(err)
	}
	return held
}

func requester() schema.Principal { return schema.Principal{Name: "agent", Owner: "team"} }

// state reads an approval.
func (f *fabric) state(id schema.ApprovalID) *ledger.Approval {
	f.t.Helper()
	a, _, err := f.ledger.Get(f.t.Context(), schema.AllTenants(), id)
	if err != nil {
		f.t.Fatal(err)
	}
	return a
}

// answer is the response to a request.
type answer struct {
	status int
	header http.Header
	body   string
}

func (f *fabric) do(c *http.Client, method, path, body string, header ...string) answer {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), method, f.url+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// api sends a request with the key of the named person; "" sends no key.
func (f *fabric) api(name, method, path, body string, header ...string) answer {
	f.t.Helper()
	if name != "" {
		header = append(header, "Authorization", "Bearer "+f.keys[name])
	}
	if body != "" {
		header = append([]string{"Content-Type", "application/json"}, header...)
	}
	return f.do(f.browser(), method, path, body, header...)
}

// browser returns a client that keeps cookies and follows no redirects.
func (f *fabric) browser() *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	c := &http.Client{Jar: jar, Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	f.t.Cleanup(c.CloseIdleConnections)
	return c
}

// signedIn returns a browser in which the named person has signed in.
func (f *fabric) signedIn(name string) *http.Client {
	f.t.Helper()
	c := f.browser()
	page := f.do(c, "GET", "/sign-in", "")
	a := f.post(c, "/sign-in", url.Values{"token": {formToken(f.t, page.body, "/sign-in")}, "key": {f.keys[name]}, "next": {"/"}})
	if a.status != http.StatusSeeOther || a.header.Get("Location") != "/" {
		f.t.Fatalf("signing in: %d %s", a.status, a.body)
	}
	return c
}

func (f *fabric) post(c *http.Client, path string, form url.Values, header ...string) answer {
	f.t.Helper()
	return f.do(c, "POST", path, form.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)...)
}

// formToken returns the token of the form with the action path.
func formToken(t *testing.T, page, path string) string {
	t.Helper()
	m := regexp.MustCompile(`(?s)action="` + regexp.QuoteMeta(path) + `".*?name="token" value="([^"]+)"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("there is no form for %s in:\n%s", path, page)
	}
	return m[1]
}

// seen waits until the local ledger has the approval in the state.
func (f *fabric) seen(id schema.ApprovalID, state ledger.State) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	changed := make(chan struct{}, 1)
	defer f.ledger.Watch(schema.AllTenants(), func(*ledger.Approval) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	for {
		if list, _ := f.ledger.List(schema.AllTenants(), ledger.Filter{States: []ledger.State{state}}, ledger.Cursor{}); len(list) > 0 {
			for _, a := range list {
				if a.ID == id {
					return
				}
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			f.t.Fatalf("%s is not seen as %s", id, state)
		}
	}
}
