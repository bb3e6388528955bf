package slack_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/approver/slack"
	"github.com/callyard/callyard/internal/approver/slack/slacktest"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func TestCardShowsTheRequestAndHidesSecrets(t *testing.T) {
	r := open(t, nil)
	a := r.hold(2, `{"target":"pr\u006fd `+"\u202e"+`<!channel> *x* аdmin","key":"hunter2"}`, nil)
	m := r.card(channel, a, "", anyCard)
	for _, want := range []string{"deploy", "prod", "agent", "team", "it changes production", "medium (level 2)", "http://page/a/" + string(a.ID), `\\u202e`, `\\u0430dmin`, "[hidden]", "10 minutes"} {
		if !strings.Contains(m.Blocks, want) {
			t.Errorf("the card lacks %q: %s", want, m.Blocks)
		}
	}
	for _, secret := range []string{"hunter2", "mrkdwn"} {
		if strings.Contains(m.Blocks+m.Text, secret) {
			t.Errorf("the card has %q", secret)
		}
	}
	if strings.Contains(m.Text, "channel") || !strings.Contains(m.Text, "deploy on prod") {
		t.Errorf("the notification: %s", m.Text)
	}
	if log := r.log.String(); strings.Contains(log, "hunter2") || strings.Contains(log, "xoxb") {
		t.Errorf("the log: %s", log)
	}
}

func TestLongArgumentsAreTruncatedWithANote(t *testing.T) {
	r := open(t, nil)
	long := strings.Repeat("0123456789", 300)
	a := r.hold(2, `{"target":"`+long+`END"}`, nil)
	m := r.card(channel, a, "", hasText("more bytes, sha256:"))
	r.click("ada", m, "show", 0)
	r.slack.Until(t, "the window opens", func() bool { return len(r.slack.Views()) == 1 })
	if v := r.slack.Views()[0]; !strings.Contains(v, "END") {
		t.Errorf("the window lacks the end: %s", v)
	}
	// Arguments too large for a modal cannot be read in Slack, so the call cannot be approved there.
	b := r.hold(2, `{"target":"`+strings.Repeat(long, 20)+`"}`, nil)
	m = r.card(channel, b, "", anyCard)
	if _, _, ok := m.Button("approve", 0); ok {
		t.Error("what nobody can read here can be approved here")
	}
	if _, _, ok := m.Button("deny", 0); !ok {
		t.Error("it cannot be denied")
	}
}

func TestClickDecidesAndUpdatesCardAndThread(t *testing.T) {
	r := open(t, nil)
	a := r.hold(2, `{"target":"x"}`, nil)
	r.click("ada", r.card(channel, a, "", anyCard), "approve", 0)
	m := r.card(channel, a, "that is approved", hasText("Approved"))
	if is := r.now(a); is.State != ledger.Approved || len(is.Decisions) != 1 || is.Decisions[0].By != "ada" || is.Decisions[0].Channel != "slack" {
		t.Fatalf("%+v", is)
	}
	if _, _, ok := m.Button("approve", 0); ok || !strings.Contains(m.Blocks, "in Slack") || !strings.Contains(m.Blocks, "ada") {
		t.Errorf("the card: %s", m.Blocks)
	}
	if _, err := r.desk.Claim(t.Context(), schema.DefaultTenant, a.ID, "door"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.desk.Finish(t.Context(), schema.DefaultTenant, a.ID, &schema.Result{Body: []byte(`{"secret":"result"}`)}, nil); err != nil {
		t.Fatal(err)
	}
	r.slack.Until(t, "the thread tells", func() bool { return len(r.slack.Thread(m)) == 1 })
	if end := r.slack.Thread(m)[0]; !strings.Contains(end.Text, "succeeded") || strings.Contains(end.Text, "secret") {
		t.Errorf("the thread: %s", end.Text)
	}

	b := r.hold(2, `{"target":"y"}`, nil)
	r.click("bob", r.card(channel, b, "", anyCard), "deny", 1)
	r.card(channel, b, "with the reason", func(m slacktest.Message) bool {
		return strings.Contains(m.Blocks, "Wrong arguments") && strings.Contains(m.Blocks, "Denied")
	})
}

func TestThreadReportsAnOutcomeThatArrivesLate(t *testing.T) {
	r := open(t, nil)
	a := r.hold(2, `{"n":1}`, nil)
	m := r.card(channel, a, "the card", anyCard)
	if err := r.decide(a, ledger.Approve, "ada"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.desk.Claim(t.Context(), schema.DefaultTenant, a.ID, "door"); err != nil {
		t.Fatal(err)
	}
	for i, end := range []error{schema.Errorf(schema.KindOutcomeUnknown, "The worker was lost."), nil} {
		if _, err := r.desk.Finish(t.Context(), schema.DefaultTenant, a.ID, &schema.Result{Body: []byte(`{}`)}, end); err != nil {
			t.Fatal(err)
		}
		r.slack.Until(t, "the thread tells", func() bool { return len(r.slack.Thread(m)) == i+1 })
	}
	for i, want := range []string{"is unknown", "succeeded"} {
		if text := r.slack.Thread(m)[i].Text; !strings.Contains(text, want) {
			t.Errorf("message %d of the thread: %s", i+1, text)
		}
	}
}

func TestReasonIsRequestedInAModal(t *testing.T) {
	r := open(t, nil)
	a := r.hold(2, `{"target":"x"}`, func(rule *risk.Approval) { rule.Reasons = true })
	m := r.card(channel, a, "", anyCard)
	r.click("ada", m, "approve", 0)
	r.slack.Until(t, "the window opens", func() bool { return len(r.slack.Views()) == 1 })
	if r.now(a).State != ledger.Pending {
		t.Fatal("it counts before the reason")
	}
	if status := r.send(slack.InteractionsPath, slacktest.Form(slacktest.Submission(userOf("ada"), r.slack.Views()[0], "because <@U1>")), nil); status != http.StatusOK {
		t.Fatal(status)
	}
	r.card(channel, a, "with the reason", hasText("because"))
	if is := r.now(a); is.State != ledger.Approved || is.Decisions[0].Reason != "because <@U1>" {
		t.Errorf("%+v", is)
	}
	b := r.hold(2, `{"target":"y"}`, nil)
	r.click("ada", r.card(channel, b, "", anyCard), "deny", len(r.config.DenyReasons))
	r.slack.Until(t, "the window opens", func() bool { return len(r.slack.Views()) == 2 })
	r.send(slack.InteractionsPath, slacktest.Form(slacktest.Submission(userOf("ada"), r.slack.Views()[1], "no")), nil)
	r.card(channel, b, "that is denied", hasText("Denied"))
}

func TestCardAboveTheSlackLevelHasALinkOnly(t *testing.T) {
	r := open(t, func(c *settings.Slack) { c.MaxLevel = 2 })
	for what, a := range map[string]*ledger.Approval{
		"policy says nothing":         r.hold(2, `{"n":1}`, func(rule *risk.Approval) { rule.SlackLevel = 0 }),
		"policy says less":            r.hold(2, `{"n":2}`, func(rule *risk.Approval) { rule.SlackLevel = 1 }),
		"the configuration says less": r.hold(3, `{"n":3}`, func(rule *risk.Approval) { rule.SlackLevel = 3 }),
	} {
		m := r.card(channel, a, what, anyCard)
		for _, action := range []string{"approve", "deny"} {
			if _, _, ok := m.Button(action, 0); ok {
				t.Errorf("%s: there is a button to %s", what, action)
			}
		}
		if _, _, ok := m.Button("page", 0); !ok {
			t.Errorf("%s: there is no link", what)
		}
	}
	fresh := r.hold(2, `{"n":4}`, func(rule *risk.Approval) { rule.FreshLogin = true })
	m := r.card(channel, fresh, "", anyCard)
	if _, _, ok := m.Button("approve", 0); ok {
		t.Error("a click is no fresh sign-in")
	}
}

func TestACardFollowsExpiryRevocationEscalationAndEdits(t *testing.T) {
	r := open(t, nil)
	expires := r.hold(2, `{"n":1}`, func(rule *risk.Approval) { rule.Expires = 1500 * time.Millisecond; rule.EscalateTo = []string{"board"} })
	revoked := r.hold(2, `{"n":2}`, nil)
	edited := r.hold(2, `{"n":3}`, func(rule *risk.Approval) { rule.Needed = 2 })
	r.card(channel, expires, "", anyCard)
	r.card(channel, revoked, "", anyCard)
	before := r.card(channel, edited, "", anyCard)
	if err := r.decide(revoked, ledger.Revoke, "bob"); err != nil {
		t.Fatal(err)
	}
	r.card(channel, revoked, "that is taken back", hasText("Withdrawn"))
	if _, err := r.desk.Decide(t.Context(), edited.ID, approval.Answer{Kind: ledger.Edit, Arguments: []byte(`{"n":33}`)}, schema.Principal{Name: "bob", Groups: []string{"ops"}}, "web"); err != nil {
		t.Fatal(err)
	}
	r.card(channel, edited, "with what was changed", hasText("33"))
	r.click("ada", before, "approve", 0) // an outdated card
	r.waitForMessage("ada", "changed since")
	if len(r.now(edited).Decisions) != 1 {
		t.Error("a click on other arguments counts")
	}
	reconcile := func() bool {
		_, err := r.desk.Reconcile(t.Context(), func(string) bool { return true })
		if err != nil {
			t.Error(err)
		}
		return r.now(expires).State == ledger.Expired
	}
	r.slack.Until(t, "it expires", reconcile)
	r.card(channel, expires, "that is expired", hasText("Expired"))
}

func TestEscalationPostsACardToTheNextGroup(t *testing.T) {
	r := open(t, nil)
	a := r.hold(2, `{"n":1}`, func(rule *risk.Approval) { rule.EscalateTo = []string{"board"} })
	r.card(channel, a, "", anyCard)
	if len(r.slack.Messages(board)) > 0 {
		t.Error("the board is asked at once")
	}
	if _, err := r.ledger.Change(t.Context(), schema.DefaultTenant, a.ID, func(a *ledger.Approval) error { a.Escalated = time.Now().UTC(); return nil }); err != nil {
		t.Fatal(err)
	}
	r.card(board, a, "", anyCard)
	r.card(channel, a, "that tells of it", hasText("Escalated to"))
}

// A decision counts once, regardless of repeated clicks and concurrent approvers.
func TestOneOfManyConcurrentClicksDecides(t *testing.T) {
	r := open(t, nil)
	for round := range 3 {
		a := r.hold(2, fmt.Sprintf(`{"round":%d}`, round), nil)
		m := r.card(channel, a, "", anyCard)
		value, _, _ := m.Button("approve", 0)
		same := slacktest.Form(slacktest.Click(userOf("ada"), m, "approve", value, ""))
		signed := slacktest.Sign(slacktest.SigningSecret, time.Now(), same)
		var all sync.WaitGroup
		var mu sync.Mutex
		taken := 0
		start := make(chan struct{})
		for i := range 100 {
			all.Go(func() {
				<-start
				if status := r.send(slack.InteractionsPath, same, func(q *http.Request) { q.Header = signed }); status == http.StatusOK {
					mu.Lock()
					taken++
					mu.Unlock()
				}
				if i%5 == 0 { // repeated clicks
					r.send(slack.InteractionsPath, slacktest.Form(slacktest.Click(userOf("ada"), m, "approve", value, "")), nil)
				}
			})
		}
		won := make(chan error, 1)
		all.Go(func() { <-start; won <- r.decide(a, ledger.Approve, "bob") })
		close(start)
		all.Wait()
		if taken != 1 {
			t.Errorf("the same request was taken %d times", taken)
		}
		r.card(channel, a, "that is approved", hasText("Approved"))
		is := r.now(a)
		if len(is.Decisions) != 1 || is.State != ledger.Approved {
			t.Errorf("%d decisions", len(is.Decisions))
		}
		by, where := "ada", "in Slack"
		if <-won == nil {
			by, where = "bob", "on the web"
		}
		if is.Decisions[0].By != by {
			t.Errorf("decided by %s, and %s was told so", is.Decisions[0].By, by)
		}
		r.card(channel, a, "that tells who", func(m slacktest.Message) bool {
			return strings.Contains(m.Blocks, where) && strings.Contains(m.Blocks, `"`+by+`"`)
		})
	}
}

func TestSlackOutageDelaysNoDecisionsAndCardsCatchUp(t *testing.T) {
	r := open(t, nil)
	for _, mode := range []slacktest.Mode{slacktest.Down, slacktest.Broken, slacktest.Slow, slacktest.Limited} {
		shown := r.hold(2, `{"shown":"before"}`, nil)
		r.card(channel, shown, "", anyCard)
		// The queue is served in order: its first item determines the method that is tried.
		tries := func() int {
			return r.slack.Calls("chat.update") + r.slack.Calls("chat.postMessage") + r.slack.Calls("conversations.history")
		}
		tried, felt := tries(), time.Now()
		r.slack.Feel(mode)
		fresh := r.hold(2, `{"asked":"meanwhile"}`, nil)
		begun := time.Now()
		for _, a := range []*ledger.Approval{shown, fresh} {
			if err := r.decide(a, ledger.Deny, "bob"); err != nil {
				t.Fatalf("mode %d: %v", mode, err)
			}
		}
		waits := r.hold(2, `{"waits":"still"}`, nil)
		if took := time.Since(begun); took > 10*time.Second { // enough for a loaded machine, much less than the delays of Slack
			t.Errorf("mode %d: deciding took %v", mode, took)
		}
		r.slack.Until(t, "it was tried", func() bool { return tries() > tried+1 || mode == slacktest.Slow })
		if took := time.Since(felt); mode == slacktest.Limited && took < slacktest.RetryAfter-100*time.Millisecond {
			t.Errorf("it was asked again after %v, and had said %v", took, slacktest.RetryAfter)
		}
		r.slack.Feel(slacktest.Well)
		well := time.Now()
		r.card(channel, shown, "that is denied", hasText("Denied"))
		r.card(channel, waits, "", anyCard)
		if took := time.Since(well); took > 30*time.Second {
			t.Errorf("mode %d: right after %v", mode, took)
		}
	}
}

func TestACardIsRewrittenAfterARestart(t *testing.T) {
	r := open(t, nil)
	a := r.hold(2, `{"n":1}`, nil)
	r.card(channel, a, "", anyCard)
	release := r.slack.Hold("chat.update")
	defer release()
	if err := r.decide(a, ledger.Approve, "bob"); err != nil {
		t.Fatal(err)
	}
	r.slack.Until(t, "it is tried", func() bool { return r.slack.Calls("chat.update") > 0 })
	r.stop()
	if m := r.slack.Messages(channel)[0]; m.Edits != 0 {
		t.Fatal("it was rewritten already")
	}
	release()
	r.start()
	r.card(channel, a, "that is approved", hasText("Approved"))
	if n := len(r.slack.Messages(channel)); n != 1 {
		t.Errorf("%d cards", n)
	}
}

func TestOnlyOneOfSeveralApproversPosts(t *testing.T) {
	r := open(t, nil)
	var others []*slack.App
	for range 3 {
		first := r.app
		r.start()
		others = append(others, first)
	}
	defer func() {
		for _, f := range others {
			f.Close()
		}
	}()
	// While one approver posts and Slack is slow, the others must not post.
	release, before := r.slack.Hold("chat.postMessage"), r.slack.Calls("chat.postMessage")
	defer release()
	first := r.hold(2, `{"first":1}`, nil)
	r.slack.Until(t, "one posts", func() bool { return r.slack.Calls("chat.postMessage") > before })
	for range 100 {
		select {
		case <-t.Context().Done():
		case <-time.After(15 * time.Millisecond): // gives the others time to try
		}
	}
	if n := r.slack.Calls("chat.postMessage") - before; n != 1 {
		t.Errorf("%d approvers post at once", n)
	}
	release()
	r.card(channel, first, "", anyCard)
	for i := range 10 {
		a := r.hold(2, fmt.Sprintf(`{"n":%d}`, i), nil)
		r.card(channel, a, "", anyCard)
		if err := r.decide(a, ledger.Deny, "bob"); err != nil {
			t.Fatal(err)
		}
		r.card(channel, a, "that is denied", hasText("Denied"))
	}
	if n := len(r.slack.Messages(channel)); n != 11 {
		t.Errorf("%d cards for 11 calls", n)
	}
}

func TestAStaleCardIsRepairedWhenItIsClicked(t *testing.T) {
	r := open(t, nil)
	a := r.hold(2, `{"n":1}`, nil)
	m := r.card(channel, a, "", anyCard)
	left := r.slack.Copy(m)
	if err := r.decide(a, ledger.Deny, "bob"); err != nil {
		t.Fatal(err)
	}
	r.click("ada", left, "approve", 0)
	r.waitForMessage("ada", "already been decided")
	r.slack.Until(t, "it is repaired", func() bool {
		for _, m := range r.slack.Messages(channel) {
			if m.TS == left.TS {
				return strings.Contains(m.Blocks, "Denied")
			}
		}
		return false
	})
}

func TestRefusedCardIsPostedAsPlainText(t *testing.T) {
	r := open(t, nil)
	r.slack.RefuseBlocks(true)
	a := r.hold(2, `{"n":1}`, nil)
	r.slack.Until(t, "it is said", func() bool { return len(r.slack.Messages(channel)) == 1 })
	if m := r.slack.Messages(channel)[0]; !strings.Contains(m.Text, string(a.ID)) || m.Blocks != "" {
		t.Errorf("%+v", m)
	}
}

func TestSocketModeHandlesClicksAndReconnects(t *testing.T) {
	r := open(t, func(c *settings.Slack) { c.AppToken, c.SigningSecret = slacktest.AppToken, "" })
	up := func() {
		t.Helper()
		r.slack.Until(t, "a socket is open", func() bool { return r.slack.Sockets() == 1 })
	}
	up()
	a := r.hold(2, `{"n":1}`, nil)
	m := r.card(channel, a, "", anyCard)
	value, _, _ := m.Button("approve", 0)
	if status := r.send(slack.InteractionsPath, slacktest.Form(slacktest.Click(userOf("ada"), m, "approve", value, "")), nil); status != http.StatusNotFound {
		t.Errorf("the endpoint is there: %d", status)
	}
	for _, lie := range []string{"api_app_id", "team"} {
		p := slacktest.Click(userOf("ada"), m, "approve", value, "")
		p[lie] = map[string]any{"api_app_id": "A0OTHER", "team": slacktest.Payload{"id": "T0OTHER"}}[lie]
		r.slack.Send(t, "lie-"+lie, "interactive", p)
		r.slack.Until(t, "it is answered", func() bool { _, ok := r.slack.Ack("lie-" + lie); return ok })
	}
	if r.now(a).State != ledger.Pending {
		t.Fatal("a lie counts")
	}
	r.slack.Drop()
	r.slack.Until(t, "it is cut", func() bool { return r.slack.Calls("apps.connections.open") > 1 })
	up()
	for range 3 { // redelivered by Slack
		r.slack.Send(t, "env-1", "interactive", slacktest.Click(userOf("ada"), m, "approve", value, ""))
	}
	r.card(channel, a, "that is approved", hasText("Approved"))
	if _, ok := r.slack.Ack("env-1"); !ok {
		t.Error("it is not answered")
	}
	if n := len(r.now(a).Decisions); n != 1 {
		t.Errorf("%d decisions", n)
	}
	r.slack.Send(t, "env-2", "slash_commands", slacktest.Payload{"team_id": slacktest.Team, "api_app_id": slacktest.App, "user_id": userOf("ada"), "user_name": "ada", "command": "/callyard", "text": "status"})
	r.slack.Until(t, "the command is answered", func() bool { _, ok := r.slack.Ack("env-2"); return ok })
	if ack, _ := r.slack.Ack("env-2"); !strings.Contains(ack, "You are ada") {
		t.Error(ack)
	}
	r.stop() // earlier work is done by then
	if told := r.slack.Ephemerals(); len(told) > 0 {
		t.Errorf("a lie or a repetition was worked on: %+v", told)
	}
}

func TestCallOfAnotherTenantIsNotFound(t *testing.T) {
	r := open(t, nil)
	r.tenant = "billing"
	a := r.hold(2, `{"target":"`+strings.Repeat("0123456789", 300)+`END"}`, nil)
	m := r.card(channel, a, "", anyCard)
	r.click("ada", m, "show", 0)
	r.waitForMessage("ada", "does not exist, or you may not see it")
	r.click("bob", m, "deny", 0)
	r.waitForMessage("bob", "does not exist, or you may not see it")
	if views := r.slack.Views(); len(views) > 0 || r.now(a).State != ledger.Pending {
		t.Errorf("%v, %s", views, r.now(a).State)
	}
}

func TestAPersonOfARemovedTenantDecidesNothing(t *testing.T) {
	r := open(t, nil)
	rita := authn.Key{Name: "rita", Groups: []string{"ops"}, Tenant: "red"}
	_, rita.Hash = authn.Generate()
	r.keys = append(r.keys, rita)
	r.of = settings.Tenants{"red": {}}
	all := func(int) bool { return true }
	r.swap(all)
	r.connect(rita)
	r.tenant = "red"
	a, b := r.hold(2, `{"n":1}`, nil), r.hold(2, `{"n":2}`, nil)
	m := r.card(channel, b, "", anyCard)
	r.click("rita", r.card(channel, a, "", anyCard), "approve", 0)
	r.card(channel, a, "that is approved", hasText("Approved"))
	r.of = settings.Tenants{"blue": {}} // the tenant red was removed
	r.swap(all)
	r.click("rita", m, "approve", 0)
	r.waitForMessage("rita", "Your tenant is not configured")
	if is := r.now(b); is.State != ledger.Pending || len(is.Decisions) != 0 {
		t.Errorf("it counts: %+v", is.Decisions)
	}
}
