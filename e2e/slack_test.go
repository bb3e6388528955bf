package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/callyard/callyard/internal/approver/slack/slacktest"
	"github.com/callyard/callyard/internal/mcptest"
)

const slackChannel = "C0APPROVALS"

// slackFabric is a fabric whose risky calls are approved in Slack.
type slackFabric struct {
	*door
	pages   string
	slack   *slacktest.Server
	browser *http.Client // of ada
	setup   setup
}

func openSlackFabric(t *testing.T, more string, socket bool) *slackFabric {
	t.Helper()
	o := &slackFabric{slack: slacktest.Start(t)}
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, `
rules:
  - name: production
    match: {server: prod, tool: echo}
    level: 2
    approval: {groups: [ops], expires: 30m, slack_level: 2}
`)
	hash := func(key string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(key))) }
	way := "signing_secret: " + slacktest.SigningSecret
	if socket {
		way = "app_token: " + slacktest.AppToken
	}
	o.setup = setup{
		servers: serversFile(t, map[string]entry{"prod": scripted(mcptest.Echo)}), data: t.TempDir(),
		env: []string{quickStop}, flags: []string{"--policy", policy, "--approver-listen", "127.0.0.1:0"},
		config: `
front_door:
  keys:
    - {name: agent, owner: release team, hash: "` + hash("agent") + `"}
approver:
  drain_delay: 1ms
  keys:
    - {name: ada, groups: [ops], hash: "` + hash("ada") + `"}
    - {name: bob, groups: [ops], hash: "` + hash("bob") + `"}
  slack:
    bot_token: ` + slacktest.BotToken + `
    ` + way + `
    team_id: ` + slacktest.Team + `
    app_id: ` + slacktest.App + `
    channels: {ops: ` + slackChannel + `}
    api_url: ` + o.slack.URL + `
` + more,
	}
	o.begin(t)
	return o
}

// begin starts or restarts the fabric with the same data.
func (o *slackFabric) begin(t *testing.T) {
	t.Helper()
	o.door = startUp(t, o.setup)
	o.pages = o.door.says(t, `approvals\s+(http://\S+)`)[1]
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	o.browser = client(t)
	o.browser.Jar = jar
	o.eventually(t, startWithin, "the server prod", func() error {
		a, err := o.try("GET", "/servers/prod/tools", "", "X-API-Key: agent")
		if err == nil && a.status != http.StatusOK {
			err = fmt.Errorf("it answers %d %s", a.status, a.body)
		}
		return err
	})
}

func (o *slackFabric) visit(t *testing.T, path string) string {
	t.Helper()
	resp, err := o.browser.Get(o.pages + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v %s", path, resp.StatusCode, err, body)
	}
	return string(body)
}

// submit submits a form of a page, with its token and hidden fields.
func (o *slackFabric) submit(t *testing.T, page, action string, fields url.Values) string {
	t.Helper()
	form := regexp.MustCompile(`(?s)<form[^>]*action="` + regexp.QuoteMeta(action) + `".*?</form>`).FindString(page)
	if form == "" {
		t.Fatalf("the page has no form %s: %s", action, page)
	}
	values := url.Values{}
	for _, in := range regexp.MustCompile(`name="([^"]+)" value="([^"]*)"`).FindAllStringSubmatch(form, -1) {
		values.Set(in[1], in[2])
	}
	for k, v := range fields {
		values[k] = v
	}
	resp, err := o.browser.PostForm(o.pages+action, values)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v %s", action, resp.StatusCode, err, body)
	}
	return string(body)
}

// sent sends a request like Slack to the endpoint.
func (o *slackFabric) sent(t *testing.T, path string, body []byte) (int, string) {
	t.Helper()
	resp, err := client(t).Do(slacktest.Request(t, o.pages+path, body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// connect makes ada sign in, get a code, type it in Slack and confirm.
func (o *slackFabric) connect(t *testing.T, typed func(command string)) {
	t.Helper()
	page := o.submit(t, o.visit(t, "/sign-in?next=/slack"), "/sign-in", url.Values{"key": {"ada"}})
	page = o.submit(t, page, "/slack/code", nil)
	code := regexp.MustCompile(`/callyard (connect \S+)</code>`).FindStringSubmatch(page)
	if code == nil {
		t.Fatalf("there is no code: %s", page)
	}
	typed(code[1])
	o.eventually(t, soon, "the page asking for the confirmation", func() error {
		if page = o.visit(t, "/slack"); !strings.Contains(page, "/slack/connect") {
			return fmt.Errorf("it says %s", page)
		}
		return nil
	})
	if page = o.submit(t, page, "/slack/connect", nil); !strings.Contains(page, "is connected") {
		t.Fatal(page)
	}
}

func (o *slackFabric) hold(t *testing.T, text string) held {
	t.Helper()
	a := o.ask(t, "POST", "/servers/prod/tools/echo", fmt.Sprintf(`{"text":%q}`, text), "X-API-Key: agent")
	var h held
	if err := json.Unmarshal(a.body, &h); err != nil || a.status != http.StatusAccepted {
		t.Fatalf("%d %s", a.status, a.body)
	}
	return h
}

func (o *slackFabric) card(t *testing.T, h held, says string) (found slacktest.Message) {
	t.Helper()
	o.slack.Until(t, "the card says "+says, func() bool {
		for _, m := range o.slack.Messages(slackChannel) {
			if strings.Contains(m.Blocks, h.ApprovalID) && strings.Contains(m.Blocks, says) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

func (o *slackFabric) ended(t *testing.T, h held, want string) {
	t.Helper()
	var s callState
	a := o.ask(t, "GET", "/calls/"+h.CallID+"?wait=20", "", "X-API-Key: agent")
	decode(t, a.body, &s)
	if s.State != want {
		t.Errorf("the call is %s: %s", s.State, a.body)
	}
}

func TestAPersonApprovesInSlackAndTheCallRuns(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	secrets := filepath.Join(t.TempDir(), "secrets")
	write(t, secrets, secret+"\n")
	events := make(chan string, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		v, err := standard.NewWebhook(secret)
		if err == nil {
			err = v.Verify(body, r.Header)
		}
		if err != nil {
			t.Errorf("the signature: %v", err)
		}
		var e struct{ Type string }
		decode(t, body, &e)
		events <- e.Type
	}))
	defer hook.Close()
	o := openSlackFabric(t, "  notify: {urls: [\""+hook.URL+"\"], secrets_file: "+secrets+", allow_private: true}\n", false)
	h := o.hold(t, "ship it")
	m := o.card(t, h, "Approval required")
	value, _, ok := m.Button("approve", 0)
	if !ok {
		t.Fatalf("there is no button: %s", m.Blocks)
	}
	click := func() []byte { return slacktest.Form(slacktest.Click("U0ADA", m, "approve", value, "")) }

	// The account is not connected yet.
	if status, _ := o.sent(t, "/slack/interactions", click()); status != http.StatusOK {
		t.Fatal(status)
	}
	o.slack.Until(t, "the stranger is refused", func() bool {
		for _, e := range o.slack.Ephemerals() {
			if e.User == "U0ADA" && strings.Contains(e.Text, "not connected") {
				return true
			}
		}
		return false
	})
	o.connect(t, func(command string) {
		if status, text := o.sent(t, "/slack/commands", slacktest.Command("U0ADA", command)); status != http.StatusOK || !strings.Contains(text, "confirm") {
			t.Fatalf("%d %s", status, text)
		}
	})
	body := click()
	signed := slacktest.Request(t, o.pages+"/slack/interactions", body).Header
	for i := range 3 { // and two replays
		r := slacktest.Request(t, o.pages+"/slack/interactions", body)
		r.Header = signed
		r.Body = io.NopCloser(bytes.NewReader(body))
		resp, err := client(t).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if want := map[bool]int{true: http.StatusOK, false: http.StatusConflict}[i == 0]; resp.StatusCode != want {
			t.Errorf("try %d: %d", i, resp.StatusCode)
		}
	}
	o.ended(t, h, "succeeded")
	m = o.card(t, h, "in Slack")
	o.slack.Until(t, "the thread tells the end", func() bool {
		th := o.slack.Thread(m)
		return len(th) == 1 && strings.Contains(th[0].Text, "succeeded")
	})
	seen := map[string]bool{}
	for !seen["approval.asked"] || !seen["approval.decided"] || !seen["approval.ended"] {
		select {
		case e := <-events:
			seen[e] = true
		case <-time.After(startWithin):
			t.Fatalf("only these were told: %v", seen)
		}
	}
}

func TestSlackSocketModeNeedsNoInboundConnection(t *testing.T) {
	o := openSlackFabric(t, "", true)
	o.slack.Until(t, "the socket is open", func() bool { return o.slack.Sockets() == 1 })
	if status, _ := o.sent(t, "/slack/interactions", []byte("payload={}")); status != http.StatusNotFound {
		t.Errorf("the endpoint answers %d", status)
	}
	o.connect(t, func(command string) {
		o.slack.Send(t, "env-connect", "slash_commands", slacktest.Payload{"team_id": slacktest.Team, "api_app_id": slacktest.App, "user_id": "U0ADA", "user_name": "ada", "command": "/callyard", "text": command})
		o.slack.Until(t, "the command is answered", func() bool { _, ok := o.slack.Ack("env-connect"); return ok })
	})
	h := o.hold(t, "no")
	m := o.card(t, h, "Approval required")
	value, text, _ := m.Button("deny", 0)
	o.slack.Send(t, "env-deny", "interactive", slacktest.Click("U0ADA", m, "deny", value, text))
	o.ended(t, h, "denied")
	o.card(t, h, "Not needed")
}

func TestSlackCardIsUpdatedByAnotherApproverAfterAKill(t *testing.T) {
	o := openSlackFabric(t, "", false)
	h := o.hold(t, "x")
	o.card(t, h, "Approval required")
	release := o.slack.Hold("chat.update")
	defer release()
	before := o.slack.Calls("chat.update")
	a, err := send(client(t), o.pages, "GET", "/approvals/"+h.ApprovalID, "", "X-API-Key: bob")
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Digest string `json:"arguments_digest"`
	}
	decode(t, a.body, &s)
	a, err = send(client(t), o.pages, "POST", "/approvals/"+h.ApprovalID+"/decisions", `{"kind":"deny","digest":"`+s.Digest+`"}`, "X-API-Key: bob")
	if err != nil || a.status != http.StatusOK {
		t.Fatalf("%v %d %s", err, a.status, a.body)
	}
	o.slack.Until(t, "it is about to be rewritten", func() bool { return o.slack.Calls("chat.update") > before })
	o.kill9(t)
	if m := o.slack.Messages(slackChannel); len(m) != 1 || m[0].Edits != 0 {
		t.Fatalf("%+v", m)
	}
	release()
	o.begin(t)
	o.card(t, h, "Denied")
	if n := len(o.slack.Messages(slackChannel)); n != 1 {
		t.Errorf("%d cards", n)
	}
}
