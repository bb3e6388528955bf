package slack_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approver/slack"
	"github.com/callyard/callyard/internal/approver/slack/enrol"
	"github.com/callyard/callyard/internal/approver/slack/slacktest"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// forgedRequest is a request that must have no effect.
type forgedRequest struct {
	what   string
	status int // 0 means that it is authentic, and refused after the response
	body   []byte
	header http.Header
	path   string
	call   *ledger.Approval
}

// forge returns the corpus. Each item is a valid click except for the fault in its name.
func (r *fixture) forge() []forgedRequest {
	var all []forgedRequest
	a := r.hold(2, `{"n":1}`, nil)
	m := r.card(channel, a, "", anyCard)
	value, _, _ := m.Button("approve", 0)
	no, noText, _ := m.Button("deny", 0)
	click := func(change func(slacktest.Payload)) []byte {
		p := slacktest.Click(userOf("ada"), m, "approve", value, "")
		if change != nil {
			change(p)
		}
		return slacktest.Form(p)
	}
	add := func(what string, status int, body []byte, header http.Header) {
		all = append(all, forgedRequest{what, status, body, header, slack.InteractionsPath, a})
	}
	now, secret := time.Now(), slacktest.SigningSecret
	sign := func(at time.Time, body []byte) http.Header { return slacktest.Sign(secret, at, body) }

	for i := range 32 { // flip each bit of a byte of the signature, in turn
		body := click(nil)
		h := sign(now, body)
		mac, _ := hex.DecodeString(strings.TrimPrefix(h.Get("X-Slack-Signature"), "v0="))
		mac[i] ^= 1 << (i % 8)
		h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac))
		add("a bit of the signature", http.StatusUnauthorized, body, h)
	}
	for _, bad := range []string{"", "v0=", "v1=" + strings.Repeat("0", 64), strings.Repeat("0", 64), "v0=" + strings.Repeat("zz", 32), "v0=" + strings.Repeat("0", 62), "v0=" + strings.Repeat("0", 66), "V0=" + strings.Repeat("0", 64)} {
		body := click(nil)
		h := sign(now, body)
		h.Set("X-Slack-Signature", bad)
		add("a signature of another form", http.StatusUnauthorized, body, h)
	}
	v1 := click(nil)
	h := sign(now, v1)
	h.Set("X-Slack-Signature", strings.Replace(h.Get("X-Slack-Signature"), "v0", "v1", 1))
	add("another version", http.StatusUnauthorized, v1, h)
	for _, other := range []string{"", "x", secret + "0", strings.ToUpper(secret), slacktest.BotToken} {
		body := click(nil)
		add("signed with another secret", http.StatusUnauthorized, body, slacktest.Sign(other, now, body))
	}
	for _, off := range []time.Duration{6 * time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour, 365 * 24 * time.Hour} {
		for range 4 {
			late, early := click(nil), click(nil)
			add("late", http.StatusUnauthorized, late, sign(now.Add(-off), late))
			add("early", http.StatusUnauthorized, early, sign(now.Add(off), early))
		}
	}
	for _, ts := range []string{"", "x", "0", "-1", "9223372036854775807", "1e9", strconv.FormatInt(now.UnixMilli(), 10), strconv.FormatInt(now.Unix(), 10) + ".5", "+" + strconv.FormatInt(now.Unix(), 10)} {
		body := click(nil)
		h := sign(now, body)
		h["X-Slack-Request-Timestamp"] = []string{ts}
		add("a time that was not signed", http.StatusUnauthorized, body, h)
	}
	twice := click(nil)
	h = sign(now, twice)
	h["X-Slack-Signature"] = append(h["X-Slack-Signature"], h["X-Slack-Signature"][0])
	add("signed twice", http.StatusUnauthorized, twice, h)

	// A different encoding of the same body with the original signature.
	for i := range 24 {
		body := click(nil)
		form, _ := url.ParseQuery(string(body))
		payload := form.Get("payload")
		var again bytes.Buffer
		switch i % 6 {
		case 0:
			again.WriteString("payload=" + url.PathEscape(payload))
		case 1:
			again.Write(append(body, "&x=1"...))
		case 2:
			_ = json.Indent(&again, []byte(payload), "", " ")
			payload = again.String()
			again.Reset()
			again.WriteString(url.Values{"payload": {payload}}.Encode())
		case 3:
			again.Write(append([]byte("&"), body...))
		case 4:
			again.WriteString(strings.Replace(string(body), "%22", "%2"+"2", 1) + "\n")
		case 5:
			again.WriteString(strings.ToLower(string(body)))
		}
		add(fmt.Sprintf("re-encoded %d", i%6), http.StatusUnauthorized, again.Bytes(), sign(now, body))
	}
	// Changed bodies with the original signature.
	for _, user := range []string{"bob", "eve"} {
		for range 5 {
			body := click(nil)
			other := bytes.ReplaceAll(body, []byte(userOf("ada")), []byte(userOf(user)))
			add("another user in a signed body", http.StatusUnauthorized, other, sign(now, body))
		}
	}
	for _, change := range []struct {
		what   string
		change func(slacktest.Payload)
	}{
		{"another workspace", func(p slacktest.Payload) { p["team"] = slacktest.Payload{"id": "T0OTHER"} }},
		{"no workspace", func(p slacktest.Payload) { p["team"] = nil }},
		{"somebody of another workspace", func(p slacktest.Payload) {
			p["user"] = slacktest.Payload{"id": userOf("ada"), "team_id": "T0OTHER"}
		}},
		{"another app", func(p slacktest.Payload) { p["api_app_id"] = "A0OTHER" }},
		{"no app", func(p slacktest.Payload) { delete(p, "api_app_id") }},
		{"nobody", func(p slacktest.Payload) { p["user"] = slacktest.Payload{"id": "", "team_id": slacktest.Team} }},
	} {
		for range 6 {
			body := click(change.change)
			add(change.what, http.StatusForbidden, body, sign(now, body))
		}
	}
	for _, user := range []string{"U0STRANGER", "", "U0ADA ", "u0ada", "ada", "U0ADA.", "U0GONE", userOf("eve"), userOf("agent")} {
		for range 4 {
			status := 0
			if user == "" {
				status = http.StatusForbidden
			}
			for _, deny := range []bool{false, true} {
				body := click(func(p slacktest.Payload) {
					if deny {
						p["actions"] = slacktest.Click("", m, "deny", no, noText)["actions"]
					}
					p["user"] = slacktest.Payload{"id": user, "username": "ada", "name": "ada", "team_id": slacktest.Team}
				})
				add("an account that may not: "+user, status, body, sign(now, body))
			}
		}
	}
	for _, bad := range []string{"", "appr_1", string(a.ID), string(a.ID) + ".", string(a.ID) + "." + strings.Repeat("0", 24), string(a.ID) + strings.ToUpper(strings.TrimPrefix(value, string(a.ID))), value + "0", " " + value, "appr_0.." + strings.Repeat("0", 24), strings.TrimSuffix(value, value[len(value)-1:])} {
		body := click(func(p slacktest.Payload) {
			p["actions"] = slacktest.Click("", m, "approve", bad, "")["actions"]
		})
		add("a value of another call", 0, body, sign(now, body))
	}
	for what, b := range map[string]*ledger.Approval{
		"above the policy's level":        r.hold(2, `{"n":2}`, func(rule *risk.Approval) { rule.SlackLevel = 1 }),
		"where the policy names no level": r.hold(1, `{"n":3}`, func(rule *risk.Approval) { rule.SlackLevel = 0 }),
		"above the configuration's level": r.hold(3, `{"n":4}`, func(rule *risk.Approval) { rule.SlackLevel = 3 }),
	} {
		digest := b.Bound()
		own := string(b.ID) + "." + strings.TrimPrefix(digest.ArgumentsDigest, "sha256:")[:24]
		for _, action := range []string{"approve", "deny"} {
			for range 3 {
				text := ""
				v := own
				if action == "deny" {
					v, text = own+".0", "Not needed"
				}
				body := slacktest.Form(slacktest.Click(userOf("ada"), m, action, v, text))
				all = append(all, forgedRequest{what, 0, body, sign(now, body), slack.InteractionsPath, b})
			}
		}
		window := fmt.Sprintf(`{"type":"modal","callback_id":"reason","private_metadata":%q}`, fmt.Sprintf(`{"ref":%q,"kind":"approve","channel":%q}`, own, channel))
		body := slacktest.Form(slacktest.Submission(userOf("ada"), window, "by a window"))
		all = append(all, forgedRequest{what + ", by a window", 0, body, sign(now, body), slack.InteractionsPath, b})
	}
	for _, kind := range []string{"edit", "extend", "revoke", "", "Approve"} {
		window := fmt.Sprintf(`{"type":"modal","callback_id":"reason","private_metadata":%q}`, fmt.Sprintf(`{"ref":%q,"kind":%q,"channel":%q}`, value, kind, channel))
		body := slacktest.Form(slacktest.Submission(userOf("ada"), window, "x"))
		add("an answer that is none here", 0, body, sign(now, body))
	}
	for _, raw := range []string{"", "payload=", "payload=%7B", "payload=null", "payload=%5B%5D", "payload=%7B%7D&payload=%7B%7D", "x=1", "payload=1"} {
		status := http.StatusBadRequest
		if raw == "payload=null" {
			status = http.StatusForbidden
		}
		add("no payload", status, []byte(raw), sign(now, []byte(raw)))
	}
	return all
}

func TestNoForgedRequestCounts(t *testing.T) {
	r := open(t, nil)
	all := r.forge()
	// One person loses the group, and another the key, after they connected.
	r.swap(func(i int) bool { return r.keys[i].Name != "gone" })
	if len(all) < 200 {
		t.Fatalf("only %d", len(all))
	}
	for _, f := range all {
		status := r.send(f.path, f.body, func(q *http.Request) { q.Header = f.header })
		if want := f.status; want == 0 && status != http.StatusOK || want != 0 && status != want {
			t.Errorf("%s: answered with %d", f.what, status)
		}
	}
	r.settle()
	for _, f := range all {
		if is := r.now(f.call); is.State != ledger.Pending || len(is.Decisions) > 0 {
			t.Fatalf("%s: it counts: %+v", f.what, is.Decisions)
		}
	}
	t.Logf("%d forged requests, 0 accepted", len(all))
}

// swap restarts with other keys, like a change of the configuration.
func (r *fixture) swap(keep func(i int) bool) {
	r.t.Helper()
	r.stop()
	r.book.Close()
	keys := r.keys[:0:0]
	for i, k := range r.keys {
		if keep(i) {
			keys = append(keys, k)
		}
	}
	r.keys = keys
	r.book = r.openBook(keys)
	r.start()
}

// settle waits until all clicks so far are processed: it makes a valid click, whose effect is
// visible after all others.
func (r *fixture) settle() {
	r.t.Helper()
	last := r.hold(2, `{"last":1}`, nil)
	r.click("bob", r.card(channel, last, "", anyCard), "approve", 0)
	r.card(channel, last, "that is approved", hasText("Approved"))
	r.stop() // waits for work in progress
	r.start()
}

func TestAReplayedRequestIsRefusedByEveryApprover(t *testing.T) {
	r := open(t, nil)
	a := r.hold(2, `{"n":1}`, func(rule *risk.Approval) { rule.Needed = 2 })
	m := r.card(channel, a, "", anyCard)
	value, _, _ := m.Button("approve", 0)
	body := slacktest.Form(slacktest.Click(userOf("ada"), m, "approve", value, ""))
	header := slacktest.Sign(slacktest.SigningSecret, time.Now(), body)
	again := func() int {
		return r.send(slack.InteractionsPath, body, func(q *http.Request) { q.Header = header })
	}
	if status := again(); status != http.StatusOK {
		t.Fatal(status)
	}
	for range 50 {
		if status := again(); status != http.StatusConflict {
			t.Fatalf("a replay is answered with %d", status)
		}
	}
	r.stop()
	r.start() // another process
	if status := again(); status != http.StatusConflict {
		t.Errorf("another approver answers a replay with %d", status)
	}
	r.slack.Until(t, "one counts", func() bool { return len(r.now(a).Decisions) == 1 })
}

func TestClickIsRefusedAfterLeavingTheGroup(t *testing.T) {
	r := open(t, nil)
	who := schema.Principal{Name: "oidc:grace@x", Owner: "grace@x", Groups: []string{"ops"}}
	code, _, err := r.book.Code(t.Context(), who)
	if err == nil {
		err = r.book.Typed(t.Context(), code, enrol.User{Team: slacktest.Team, ID: userOf("grace")})
	}
	if err != nil {
		t.Fatal(err)
	}
	r.slack.Until(t, "the code is typed", func() bool { return len(r.book.Offered(who)) > 0 })
	if err := r.book.Accept(t.Context(), who, time.Now(), slacktest.Team, userOf("grace")); err != nil {
		t.Fatal(err)
	}
	first, second := r.hold(2, `{"n":1}`, nil), r.hold(2, `{"n":2}`, nil)
	m := r.card(channel, second, "", anyCard)
	r.click("grace", r.card(channel, first, "", anyCard), "approve", 0)
	r.card(channel, first, "that is approved", hasText("Approved"))
	who.Groups = []string{"guests"} // as of the next sign-in
	r.slack.Until(t, "the link is known", func() bool { _, ok := r.book.Connected(who); return ok })
	if err := r.book.SignedIn(t.Context(), who); err != nil {
		t.Fatal(err)
	}
	r.click("grace", m, "approve", 0)
	r.waitForMessage("grace", "may not see it")
	if is := r.now(second); is.State != ledger.Pending {
		t.Errorf("it counts: %+v", is.Decisions)
	}
}

func TestRefusedClickGetsTheReason(t *testing.T) {
	r := open(t, nil)
	a := r.hold(2, `{"n":1}`, nil)
	m := r.card(channel, a, "", anyCard)
	for name, why := range map[string]string{"stranger": "not connected", "eve": "may not see it", "agent": "somebody else must decide"} {
		r.click(name, m, "approve", 0)
		r.waitForMessage(name, why)
	}
	if r.now(a).State != ledger.Pending {
		t.Error("one of them counts")
	}
	for _, e := range r.slack.Ephemerals() {
		if e.Channel != channel {
			t.Errorf("told in %s", e.Channel)
		}
	}
}

func TestTheEndpointTakesFormsByPostOnly(t *testing.T) {
	r := open(t, nil)
	for what, change := range map[string]func(*http.Request){
		"GET":  func(q *http.Request) { q.Method = http.MethodGet; q.Body = http.NoBody; q.ContentLength = 0 },
		"JSON": func(q *http.Request) { q.Header.Set("Content-Type", "application/json") },
	} {
		if status := r.send(slack.InteractionsPath, slacktest.Form(slacktest.Payload{}), change); status != http.StatusMethodNotAllowed && status != http.StatusUnsupportedMediaType {
			t.Errorf("%s: %d", what, status)
		}
	}
	huge := bytes.Repeat([]byte("x"), 2<<20)
	if status := r.send(slack.InteractionsPath, huge, nil); status != http.StatusBadRequest {
		t.Errorf("a huge body: %d", status)
	}
	if status := r.send(slack.CommandsPath, slacktest.Command(userOf("ada"), "status"), nil); status != http.StatusOK {
		t.Errorf("a command: %d", status)
	}
	if status := r.send(slack.CommandsPath, bytes.Replace(slacktest.Command(userOf("ada"), "status"), []byte(slacktest.Team), []byte("T0OTHER"), 1), nil); status != http.StatusForbidden {
		t.Errorf("a command of another workspace: %d", status)
	}
}
