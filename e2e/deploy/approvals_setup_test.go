package deploy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/approver/oidc/oidctest"
	"github.com/callyard/callyard/internal/approver/slack/slacktest"
)

// approvalsPage is the page whose stories are tested, and approvalsValues the chart values that an
// operator adds to a shipped set-up for them.
const (
	approvalsPage   = "../docs/how-to/approvals.md"
	approvalsValues = "checks/testdata/approvals.yaml"
)

// values is the part of approvalsValues that is used.
type values struct {
	Policy    string
	Frontdoor struct{ Keys []any }
	Approver  struct {
		Keys     []any
		Settings map[string]any
	}
}

func guideValues(t testing.TB) (v values) {
	t.Helper()
	parseYAML(t, approvalsValues, &v)
	return v
}

// composeConfigs writes the files that the services of compose.yaml read, extended with
// approvalsValues.
func composeConfigs(t testing.TB, around fabricValues) string {
	t.Helper()
	folder := t.TempDir()
	add := guideValues(t)
	c := composed(t, "compose.yaml")
	for service, role := range map[string]string{"frontdoor-1": "frontdoor", "worker-1": "worker", "approver": "approver"} {
		s := c.Services[service]
		if !slices.Equal(s.Command, []string{"--config", "/etc/callyard/" + role + ".yaml"}) || !slices.Contains(s.Volumes, "./examples:/etc/callyard:ro") {
			t.Fatalf("%s runs %v with %v", service, s.Command, s.Volumes)
		}
		// Each role can read only the secrets that are mounted.
		text := read(t, filepath.Join("examples", role+".yaml"))
		for _, m := range regexp.MustCompile(`\$\{SECRETS_DIR:-/run/secrets\}(/[a-z.]+)`).FindAllStringSubmatch(text, -1) {
			if !slices.ContainsFunc(s.Volumes, func(v string) bool { return strings.HasSuffix(v, ":/run/secrets"+m[1]+":ro") }) {
				t.Errorf("%s reads %s, which is not mounted", service, m[1])
			}
		}
		var config map[string]any
		if err := yaml.Unmarshal([]byte(text), &config); err != nil {
			t.Fatal(err)
		}
		switch role {
		case "frontdoor":
			config["front_door"].(map[string]any)["keys"] = add.Frontdoor.Keys
		case "approver":
			section := config["approver"].(map[string]any)
			section["keys"] = add.Approver.Keys
			for name, setting := range add.Approver.Settings {
				section[name] = setting
			}
		}
		out, err := yaml.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, role+".yaml"), strings.ReplaceAll(string(out), "/run/secrets/", around.secrets+"/"))
	}
	write(t, filepath.Join(folder, "policy.yaml"), add.Policy)
	write(t, filepath.Join(folder, "servers.json"), read(t, "examples/servers.json"))
	return folder
}

// guideFabric is a fabric of a shipped set-up with the people of approvalsValues, and their identity
// provider, Slack and receiver of events.
type guideFabric struct {
	*fabric
	t        testing.TB
	page     string // docs/how-to/approvals.md
	provider *oidctest.Provider
	slack    *slacktest.Server
	mu       sync.Mutex
	events   map[string]int // that the receiver got, by type
}

func openGuideFabric(t *testing.T, configs func(fabricValues) string) *guideFabric {
	t.Helper()
	o := &guideFabric{t: t, page: read(t, approvalsPage), provider: oidctest.Start(t), slack: slacktest.Start(t), events: make(map[string]int)}
	hooks := httptest.NewServer(http.HandlerFunc(o.told))
	t.Cleanup(hooks.Close)
	o.fabric = openConfigured(t, func(around fabricValues) string {
		folder := configs(around)
		for name, text := range map[string]string{
			"oidc": o.provider.Secret, "slack-bot": slacktest.BotToken, "slack-signing": slacktest.SigningSecret, "hooks": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n",
		} {
			write(t, filepath.Join(around.secrets, name), text)
		}
		file := filepath.Join(folder, "approver.yaml")
		write(t, file, strings.NewReplacer(
			"https://accounts.example.com", o.provider.Issuer, "client_id: callyard-approver", "client_id: "+o.provider.ClientID,
			"https://slack.example.com/api/", o.slack.URL, "https://hooks.example.com/approvals", hooks.URL,
		).Replace(read(t, file)))
		return folder
	}, natsFile(t, "nats-server.conf"), "nats", nil)
	return o
}

func (o *guideFabric) told(_ http.ResponseWriter, r *http.Request) {
	var e struct{ Type string }
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		o.t.Error(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events[e.Type]++
}

// hears waits until the receiver gets an event.
func (o *guideFabric) hears(t testing.TB, event string) {
	t.Helper()
	eventually(t, "the receiver being told of "+event, func() error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.events[event] == 0 {
			return fmt.Errorf("it was told %v", o.events)
		}
		return nil
	})
}

// block returns the code block of the page that begins with the given text.
func (o *guideFabric) block(t testing.TB, language, begins string) string {
	t.Helper()
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)\n```").FindAllStringSubmatch(o.page, -1) {
		if strings.HasPrefix(m[1], begins) {
			return m[1]
		}
	}
	t.Fatalf("the page prints no %s that begins with %q", language, begins)
	return ""
}

func key(of string) string { return "X-API-Key: " + of + "-key" }

// asked sends a call as a caller. The call is held.
func (o *guideFabric) asked(t testing.TB, by, tool, arguments string) held {
	t.Helper()
	var h held
	status, body := ask(t, "POST", o.door+"/servers/demo/tools/"+tool, arguments, key(by))
	if err := json.Unmarshal([]byte(body), &h); err != nil || status != http.StatusAccepted || h.Approval == "" {
		t.Fatalf("%s of %s is not held: %d %s", tool, by, status, body)
	}
	return h
}

// seen is an approval as the approver's API shows it.
type seen struct {
	State         string
	Digest        string `json:"arguments_digest"`
	ApprovalCount int    `json:"approval_count"`
	Needed        int
	Expires       string `json:"expires_at"`
	May           []string
	MayNot        string `json:"may_not_because"`
	MayNotAllow   string `json:"may_not_allow_because"`
	Escalated     string `json:"escalated_at"`
	Restarts      []struct{ Reason string }
	Rule          struct{ Groups []string }
	ToolChange    struct{ Is string } `json:"tool_change"`
	AskedBefore   *struct{}           `json:"asked_arguments"`
}

// view waits until the approval has the wanted state in the view of a person.
func (o *guideFabric) view(t testing.TB, who, id string, is func(*seen) bool) (s seen) {
	t.Helper()
	eventually(t, who+" seeing the approval as wanted", func() error {
		s = seen{}
		status, body := ask(t, "GET", o.approver+"/approvals/"+id, "", key(who))
		if err := json.Unmarshal([]byte(body), &s); err != nil || status != http.StatusOK || is != nil && !is(&s) {
			return fmt.Errorf("%d %.1500s", status, body)
		}
		return nil
	})
	return s
}

// decide sends a person's decision on their current view; more is added to it.
func (o *guideFabric) decide(t testing.TB, who, id, kind, more string) (int, string) {
	t.Helper()
	s := o.view(t, who, id, nil)
	return ask(t, "POST", o.approver+"/approvals/"+id+"/decisions", fmt.Sprintf(`{"kind":%q,"digest":%q%s}`, kind, s.Digest, more), key(who))
}

// decides is decide with an expected status.
func (o *guideFabric) decides(t testing.TB, who, id, kind, more string, want int) string {
	t.Helper()
	status, body := o.decide(t, who, id, kind, more)
	if status != want {
		t.Errorf("%s: %s is answered %d, not %d: %s", who, kind, status, want, body)
	}
	return body
}

// ended waits until a call has the state and returns its JSON.
func (o *guideFabric) ended(t testing.TB, by string, h held, state string) (body string) {
	t.Helper()
	eventually(t, "the call being "+state, func() error {
		var status int
		status, body = ask(t, "GET", o.door+"/calls/"+h.Call, "", key(by))
		if status != http.StatusOK || !strings.Contains(body, `"state":"`+state+`"`) {
			return fmt.Errorf("%d %.500s", status, body)
		}
		return nil
	})
	return body
}

// browser is a browser on the approver's pages.
type browser struct {
	t    testing.TB
	base string
	http *http.Client
}

// browses opens a browser, signed in with the key of who unless that is "".
func (o *guideFabric) browses(t testing.TB, who string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t, o.approver, &http.Client{Jar: jar, Timeout: within, Transport: &http.Transport{DisableKeepAlives: true}}}
	if who != "" {
		_, page := b.get("/sign-in")
		_, name, _ := strings.Cut(key(who), ": ")
		if page = b.submit(page, "/sign-in", url.Values{"key": {name}}); !strings.Contains(page, "Sign out") {
			t.Fatalf("%s is not signed in: %s", who, page)
		}
	}
	return b
}

func (b *browser) get(path string) (int, string) {
	b.t.Helper()
	if !strings.Contains(path, "://") {
		path = b.base + path
	}
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, path, http.NoBody)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	return b.do(r)
}

func (b *browser) do(r *http.Request) (int, string) {
	b.t.Helper()
	resp, err := b.http.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

var formField = regexp.MustCompile(`name="([^"]+)" value="([^"]*)"`)

// submit submits a form of a page, with its content and the fields.
func (b *browser) submit(page, action string, fields url.Values) string {
	b.t.Helper()
	form := regexp.MustCompile(`(?s)<form[^>]*method="post"[^>]*action="` + regexp.QuoteMeta(action) + `".*?</form>`).FindString(page)
	if form == "" {
		b.t.Fatalf("the page has no form %s:\n%s", action, page)
	}
	// Buttons that send the form elsewhere have a different token.
	form = regexp.MustCompile(`<button[^>]*formaction=[^>]*>`).ReplaceAllString(form, "")
	sent := url.Values{}
	for _, m := range formField.FindAllStringSubmatch(form, -1) {
		if !strings.Contains(m[0], `name="pattern"`) && !strings.Contains(m[0], `name="kind"`) && !strings.HasPrefix(m[1], "same.") {
			sent.Add(m[1], m[2])
		}
	}
	for name, value := range fields {
		sent[name] = value
	}
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.base+action, strings.NewReader(sent.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", b.base)
	r.Header.Set("Accept", "text/html")
	status, answer := b.do(r)
	if status != http.StatusOK {
		b.t.Fatalf("%s is answered %d: %s", action, status, answer)
	}
	return answer
}

func TestApprovalsValuesMatchTheDocsPage(t *testing.T) {
	o := &guideFabric{page: read(t, approvalsPage)}
	var printed struct{ Approver map[string]any }
	if err := yaml.Unmarshal([]byte(o.block(t, "yaml", "approver:\n  public_url:")), &printed); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(printed.Approver["oidc"], guideValues(t).Approver.Settings["oidc"]); diff != "" {
		t.Errorf("the provider of %s is not the one of the page (-page +values):\n%s", approvalsValues, diff)
	}
	if _, err := os.Stat("checks/testdata/approvals-rendered.yaml"); err != nil {
		t.Error(err)
	}
}
