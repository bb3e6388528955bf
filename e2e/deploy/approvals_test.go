package deploy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approver/slack/slacktest"
)

// stories are the stories of docs/how-to/approvals.md, in the order of the page. Each holds
// separate calls.
var stories = []struct {
	heading string // the heading of the story on the page
	tell    func(*testing.T, *guideFabric)
}{
	{"# Approvals", checkDemo},
	{"## The pages", checkPages},
	{"### What you see is what runs", checkVisibility},
	{"### What changed in the tool", checkTool},
	{"## Decisions", checkAnswers},
	{"## Decisions", checkRequester},
	{"## Decisions", checkSlack},
	{"### When the approval starts again", checkRestarts},
	{"### Bulk review", checkSeveralApprovers},
	{"### Approve and remember", checkPermissions},
	{"### With API keys", checkKeys},
	{"### With a provider (OpenID Connect)", checkProvider},
	{"### Sessions", checkFreshSignIns},
	{"## The API", checkAPI},
	{"## Failures", checkKilledApprover},
}

// The stories of docs/how-to/approvals.md, with the fabric of compose and with that of the chart.
func TestApprovalsGuideWorksWithComposeAndChart(t *testing.T) {
	for name, configs := range map[string]func(testing.TB, fabricValues) string{
		"compose": composeConfigs,
		"chart": func(t testing.TB, around fabricValues) string {
			return chartConfigs(t, "checks/testdata/approvals-rendered.yaml", around)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := openGuideFabric(t, func(around fabricValues) string { return configs(t, around) })
			told := map[string]bool{}
			for _, s := range stories {
				if !strings.Contains(o.page, "\n"+s.heading+"\n") && !strings.HasPrefix(o.page, s.heading+"\n") {
					t.Errorf("the page has no heading %q any more", s.heading)
				}
				told[s.heading] = true
				t.Run(strings.TrimLeft(s.heading, "# "), func(t *testing.T) { s.tell(t, o) })
			}
			for _, heading := range regexp.MustCompile(`(?m)^##+ .*$`).FindAllString(o.page, -1) {
				if !told[heading] && heading != "## Signing in" { // which has only subsections
					t.Errorf("no story is told of %q", heading)
				}
			}
			for _, event := range []string{"approval.asked", "approval.decided", "approval.revoked", "approval.escalated", "approval.restarted", "approval.ended"} {
				o.hears(t, event)
			}
			o.stop(t)
			o.clean(t)
		})
	}
}

func checkDemo(t *testing.T, o *guideFabric) {
	printed := o.block(t, "sh", "callyard up")
	up := start(t, []string{
		"PATH=" + filepath.Dir(built(t, "callyard")) + string(os.PathListSeparator) + os.Getenv("PATH"),
		"CALLYARD_FRONT_DOOR_LISTEN=127.0.0.1:0", "CALLYARD_APPROVER_LISTEN=127.0.0.1:0", "CALLYARD_FRONT_DOOR_DRAIN_DELAY=1ms", "CALLYARD_APPROVER_DRAIN_DELAY=1ms",
	}, "/bin/sh", "-c", "exec "+printed)
	up.says(t, `requester\s+demo-agent\s+key \S+`)
	ann := "X-API-Key: " + up.says(t, `approver\s+ann\s+key (\S+)`)[1]
	page := up.says(t, `(http://\S+)/a/(appr_\w+)`)
	var s seen
	if status, body := ask(t, "GET", page[1]+"/approvals/"+page[2], "", ann); status != http.StatusOK || json.Unmarshal([]byte(body), &s) != nil {
		t.Fatalf("the call that is printed: %d %s", status, body)
	}
	if status, body := ask(t, "POST", page[1]+"/approvals/"+page[2]+"/decisions", `{"kind":"approve","digest":"`+s.Digest+`"}`, ann); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	if err := up.stopped(); err != nil {
		t.Error(err)
	}
}

func checkPages(t *testing.T, o *guideFabric) {
	h := o.asked(t, "agent", "big", `{"bytes":11}`)
	o.view(t, "ann", h.Approval, func(s *seen) bool { return s.State == "pending" })
	ann := o.browses(t, "ann")
	// The lists read the approver's own copy of the ledger, which may follow after the page of the
	// approval, which reads the store.
	eventually(t, "the list having the approval", func() error {
		if _, page := ann.get("/"); !strings.Contains(page, "/a/"+h.Approval) {
			return errors.New(page)
		}
		return nil
	})
	for path, wants := range map[string][]string{
		"/":                            {"/a/" + h.Approval, "bytes"},
		"/a/" + h.Approval:             {"Requested by", "agent", "team-a", "Why approval is required", "Tool description", ">Approve</button>", ">Deny</button>"},
		"/review?id=" + h.Approval:     {"pick." + h.Approval},
		"/history":                     {h.Approval},
		"/permissions":                 {"ermission"},
		"/history?state=pending&q=":    nil,
		"/a/appr_00000000000000000000": nil,
	} {
		status, page := ann.get(path)
		for _, want := range wants {
			if status != http.StatusOK || !strings.Contains(page, want) {
				t.Errorf("%s: %d, without %q", path, status, want)
			}
		}
	}
	// Visible for deciding groups, requesters and observers only.
	for who, want := range map[string]int{"ann": http.StatusOK, "otto": http.StatusOK, "eve": http.StatusNotFound} {
		if status, body := ask(t, "GET", o.approver+"/approvals/"+h.Approval, "", key(who)); status != want {
			t.Errorf("%s sees it: %d %s", who, status, body)
		}
	}
	// More groups are asked after some time.
	o.view(t, "fay", h.Approval, func(s *seen) bool { return s.Escalated != "" && slices.Contains(s.May, "approve") })
	o.decides(t, "fay", h.Approval, "approve", "", http.StatusOK)
	o.ended(t, "agent", h, "succeeded")
}

func checkVisibility(t *testing.T, o *guideFabric) {
	h := o.asked(t, "agent", "echo", "{\"message\":\"what \u202eis this\"}")
	s := o.view(t, "ann", h.Approval, nil)
	if _, page := o.browses(t, "ann").get("/a/" + h.Approval); !strings.Contains(page, "202E") {
		t.Errorf("a character that turns the text is not shown with its code point: %s", page)
	}
	if got := o.view(t, "ann", h.Approval, nil); got.State != "pending" {
		t.Errorf("opening the page made it %s", got.State)
	}
	o.decides(t, "ann", h.Approval, "edit", `,"arguments":{"message":"this"}`, http.StatusOK)
	status, body := ask(t, "POST", o.approver+"/approvals/"+h.Approval+"/decisions", `{"kind":"approve","digest":"`+s.Digest+`"}`, key("ben"))
	if status != http.StatusConflict {
		t.Errorf("an answer to what would not run any more: %d %s", status, body)
	}
	o.ended(t, "agent", h, "succeeded")
}

func checkTool(t *testing.T, o *guideFabric) {
	h := o.asked(t, "agent", "sleep", `{"seconds":0.01}`)
	o.view(t, "ann", h.Approval, func(s *seen) bool { return s.ToolChange.Is == "first" })
	o.decides(t, "ann", h.Approval, "approve", "", http.StatusOK)
	o.decides(t, "ben", h.Approval, "approve", "", http.StatusOK)
	o.ended(t, "agent", h, "succeeded")
	h = o.asked(t, "agent", "sleep", `{"seconds":0.02}`)
	o.view(t, "ann", h.Approval, func(s *seen) bool { return s.ToolChange.Is == "unchanged" })
	o.decides(t, "ann", h.Approval, "deny", "", http.StatusOK)
	o.ended(t, "agent", h, "denied")
}

func checkAnswers(t *testing.T, o *guideFabric) {
	// Approve: two people, each once, regardless of the key.
	h := o.asked(t, "agent", "sleep", `{"seconds":0.01}`)
	o.decides(t, "ann", h.Approval, "approve", "", http.StatusOK)
	if status, body := o.decide(t, "ann-phone", h.Approval, "approve", ""); status == http.StatusOK {
		t.Errorf("one person counts twice: %s", body)
	}
	if _, page := o.browses(t, "ann").get("/a/" + h.Approval); !strings.Contains(page, "1 of 2 approvals") || !strings.Contains(page, "1 more approval is needed") {
		t.Errorf("the page does not say how many are missing: %s", page)
	}
	o.decides(t, "ben", h.Approval, "approve", "", http.StatusOK)
	o.ended(t, "agent", h, "succeeded")

	// Deny: regardless of earlier approvals.
	h = o.asked(t, "agent", "sleep", `{"seconds":0.01}`)
	o.decides(t, "ann", h.Approval, "approve", "", http.StatusOK)
	o.decides(t, "ben", h.Approval, "deny", `,"reason":"not now"`, http.StatusOK)
	o.ended(t, "agent", h, "denied")

	// Edit, on the page: earlier approvals are void, both versions are kept, the caller is notified.
	h = o.asked(t, "agent", "sleep", `{"seconds":60}`)
	o.decides(t, "ann", h.Approval, "approve", "", http.StatusOK)
	ben := o.browses(t, "ben")
	_, page := ben.get("/a/" + h.Approval)
	ben.submit(page, "/a/"+h.Approval+"/edit", url.Values{"arguments": {`{"seconds":0.01}`}, "reason": {"shorter"}})
	o.view(t, "ann", h.Approval, func(s *seen) bool { return s.State == "pending" && s.ApprovalCount == 1 && s.AskedBefore != nil })
	if _, page = ben.get("/a/" + h.Approval); !strings.Contains(page, "Changes in this edit") {
		t.Errorf("the page does not show what the edit changed: %s", page)
	}
	o.decides(t, "ann", h.Approval, "approve", "", http.StatusOK)
	if body := o.ended(t, "agent", h, "succeeded"); !strings.Contains(body, "edit") {
		t.Errorf("the caller is not told of the edit: %s", body)
	}

	// Extend, six times at most.
	h = o.asked(t, "agent", "sleep", `{"seconds":0.01}`)
	before := o.view(t, "ann", h.Approval, nil).Expires
	for range 6 {
		o.decides(t, "ann", h.Approval, "extend", "", http.StatusOK)
	}
	if after := o.view(t, "ann", h.Approval, nil).Expires; after <= before {
		t.Errorf("it ended at %s, and after six extensions at %s", before, after)
	}
	if status, body := o.decide(t, "ann", h.Approval, "extend", ""); status == http.StatusOK {
		t.Errorf("a seventh time: %s", body)
	}
	// Revoke: withdraws the request.
	o.decides(t, "ann", h.Approval, "revoke", `,"reason":"a mistake"`, http.StatusOK)
	o.view(t, "ann", h.Approval, func(s *seen) bool { return s.State == "revoked" })
	if status, body := o.decide(t, "ben", h.Approval, "approve", ""); status == http.StatusOK {
		t.Errorf("a call that was taken back is approved: %s", body)
	}
}

func checkRequester(t *testing.T, o *guideFabric) {
	h := o.asked(t, "ben-agent", "echo", `{"message":"mine"}`)
	if s := o.view(t, "ben", h.Approval, nil); slices.Contains(s.May, "approve") || s.MayNot == "" {
		t.Errorf("ben may decide what his agent asks for: %+v", s)
	}
	o.decides(t, "ben", h.Approval, "approve", "", http.StatusForbidden)
	o.decides(t, "ann", h.Approval, "approve", "", http.StatusOK)
	o.ended(t, "ben-agent", h, "succeeded")
	// These pages do not show calls that the caller confirms.
	status, body := ask(t, "POST", o.door+"/servers/demo/tools/fail", `{}`, key("agent"))
	var token held
	if err := json.Unmarshal([]byte(body), &token); err != nil || status != http.StatusAccepted {
		t.Fatalf("%d %s", status, body)
	}
	if status, body := ask(t, "POST", o.door+"/confirmations/"+token.Confirmation, `{"confirm":true}`, key("agent")); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
}

func checkSlack(t *testing.T, o *guideFabric) {
	ann := o.browses(t, "ann")
	_, page := ann.get("/slack")
	page = ann.submit(page, "/slack/code", nil)
	code := regexp.MustCompile(`/callyard (connect \S+)</code>`).FindStringSubmatch(page)
	if code == nil {
		t.Fatalf("there is no code: %s", page)
	}
	sends := func(path string, body []byte) string {
		t.Helper()
		r := slacktest.Request(t, o.approver+path, body)
		status, answer := ann.do(r)
		if status != http.StatusOK {
			t.Fatalf("%s is answered %d: %s", path, status, answer)
		}
		return answer
	}
	sends("/slack/commands", slacktest.Command("U0ANN", code[1]))
	eventually(t, "the page asking for the confirmation", func() error {
		if _, page = ann.get("/slack"); !strings.Contains(page, `action="/slack/connect"`) {
			return fmt.Errorf("%s", page)
		}
		return nil
	})
	ann.submit(page, "/slack/connect", nil)
	h := o.asked(t, "agent", "add", `{"a":1,"b":2}`)
	var card slacktest.Message
	o.slack.Until(t, "the card", func() bool {
		for _, m := range o.slack.Messages("C0000TEST") {
			if strings.Contains(m.Blocks, h.Approval) {
				card = m
				return true
			}
		}
		return false
	})
	value, _, ok := card.Button("approve", 0)
	if !ok {
		t.Fatalf("there is no button: %s", card.Blocks)
	}
	sends("/slack/interactions", slacktest.Form(slacktest.Click("U0ANN", card, "approve", value, "")))
	o.ended(t, "agent", h, "succeeded")
}

func checkRestarts(t *testing.T, o *guideFabric) {
	// An edit to arguments that two people of finance must approve, with a recent sign-in.
	h := o.asked(t, "agent", "add", `{"a":5,"b":1}`)
	o.decides(t, "ann", h.Approval, "edit", `,"arguments":{"a":999999,"b":1}`, http.StatusOK)
	o.view(t, "fay", h.Approval, func(s *seen) bool {
		return s.State == "pending" && s.ApprovalCount == 0 && s.Needed == 2 && len(s.Restarts) == 1 && slices.Equal(s.Rule.Groups, []string{"finance"})
	})
	o.decides(t, "fay", h.Approval, "deny", "", http.StatusOK)
	o.ended(t, "agent", h, "denied")
	// An edit to arguments that the policy denies.
	h = o.asked(t, "agent", "echo", `{"message":"fine"}`)
	if status, body := o.decide(t, "ann", h.Approval, "edit", `,"arguments":{"message":"forbidden"}`); status == http.StatusOK {
		t.Errorf("an edit that the policy denies: %s", body)
	}
	// The policy requires more while the call waits.
	var files []string
	for _, pattern := range []string{"policy.yaml", "*-policy.yaml"} {
		found, err := filepath.Glob(filepath.Join(o.folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	before, version := read(t, files[0]), o.policy(t, "")
	stricter := strings.Replace(before, "- name: messages\n    match: {server: demo, tool: echo}\n    approval: {groups: [ops]", "- name: messages\n    match: {server: demo, tool: echo}\n    approval: {groups: [ops], needed: 2", 1)
	if stricter == before {
		t.Fatal("the policy has no rule for messages")
	}
	for _, file := range files {
		write(t, file, stricter)
	}
	o.view(t, "ann", h.Approval, func(s *seen) bool { return s.Needed == 2 && len(s.Restarts) == 1 })
	if again := o.policy(t, ""); again == version {
		t.Errorf("an edited policy has the version %s of the one before", version)
	}
	for _, file := range files {
		write(t, file, before)
	}
	o.policy(t, version)
	// A policy that requires less changes nothing.
	o.decides(t, "ann", h.Approval, "approve", "", http.StatusOK)
	o.view(t, "ann", h.Approval, func(s *seen) bool { return s.State == "pending" && s.ApprovalCount == 1 })
	o.decides(t, "ben", h.Approval, "approve", "", http.StatusOK)
	o.ended(t, "agent", h, "succeeded")
}

// policy waits until all processes use the same version of the policy, which must be want unless
// that is empty, and returns it.
func (o *guideFabric) policy(t testing.TB, want string) (version string) {
	t.Helper()
	eventually(t, "all processes going by one policy", func() error {
		var c struct {
			Processes []struct {
				Role  string
				Parts []struct{ Part, Version string }
			}
		}
		status, body := ask(t, "GET", o.door+"/configuration", "", key("agent"))
		if err := json.Unmarshal([]byte(body), &c); err != nil || status != http.StatusOK {
			return fmt.Errorf("%d %s", status, body)
		}
		found := map[string]bool{}
		roles := map[string]bool{}
		for _, p := range c.Processes {
			roles[p.Role] = true
			for _, part := range p.Parts {
				if part.Part == "policy" {
					version, found[part.Version] = part.Version, true
				}
			}
		}
		if len(found) != 1 || len(roles) != 3 || want != "" && version != want {
			return fmt.Errorf("%s", body)
		}
		return nil
	})
	return version
}

func checkSeveralApprovers(t *testing.T, o *guideFabric) {
	var all []held
	for i := range 4 {
		all = append(all, o.asked(t, "agent", "echo", fmt.Sprintf(`{"message":"%d"}`, i)))
	}
	path := "/review?"
	for _, h := range all {
		o.view(t, "ann", h.Approval, nil)
		path += "&id=" + h.Approval
	}
	ann := o.browses(t, "ann")
	_, page := ann.get(path)
	page = ann.submit(page, "/review", url.Values{"kind": {"approve"}})
	if !strings.Contains(page, "4 of 4 approved") {
		t.Errorf("the page does not say what came of each: %s", page)
	}
	for _, h := range all {
		o.ended(t, "agent", h, "succeeded")
	}
}

func checkPermissions(t *testing.T, o *guideFabric) {
	runs := func(arguments string, want bool) {
		t.Helper()
		status, body := ask(t, "POST", o.door+"/servers/demo/tools/echo", arguments, key("agent"))
		if want && status != http.StatusOK || !want && status != http.StatusAccepted {
			t.Errorf("%s is answered %d %s", arguments, status, body)
		}
	}
	until := func(arguments string, status int) {
		t.Helper()
		eventually(t, arguments+" being answered otherwise", func() error {
			got, body := ask(t, "POST", o.door+"/servers/demo/tools/echo", arguments, key("agent"))
			if got != status {
				return fmt.Errorf("%d %s", got, body)
			}
			return nil
		})
	}
	ann := o.browses(t, "ann")
	for _, c := range []struct {
		arguments     string
		fields        url.Values
		like, another string
	}{
		{`{"message":"exact"}`, url.Values{"pattern": {"exact"}}, `{"message":"exact"}`, `{"message":"other"}`},
		{`{"message":"place"}`, url.Values{"pattern": {"values"}, "same./message": {"1"}}, `{ "message" : "place" }`, `{"message":"other"}`},
		{`{"message":"any"}`, url.Values{"pattern": {"any"}}, `{"message":"whatever"}`, ""},
	} {
		h := o.asked(t, "agent", "echo", c.arguments)
		if s := o.view(t, "ann", h.Approval, nil); s.MayNotAllow != "" {
			t.Fatalf("it is not offered: %s", s.MayNotAllow)
		}
		_, page := ann.get("/a/" + h.Approval)
		c.fields.Set("for", "1h0m0s")
		ann.submit(page, "/a/"+h.Approval+"/allow", c.fields)
		o.ended(t, "agent", h, "succeeded")
		until(c.like, http.StatusOK)
		runs(c.like, true)
		if c.another != "" {
			runs(c.another, false)
		}
		// Revoked on the page, by any person who may decide such calls.
		ben := o.browses(t, "ben")
		_, page = ben.get("/permissions")
		back := regexp.MustCompile(`action="(/permissions/[^"]+/revoke)"`).FindStringSubmatch(page)
		if back == nil {
			t.Fatalf("nothing can be taken back: %s", page)
		}
		ben.submit(page, back[1], url.Values{"reason": {"enough"}})
		until(c.like, http.StatusAccepted)
	}
	// With a limit, in a batch as well.
	h := o.asked(t, "agent", "echo", `{"message":"twice"}`)
	allow := `,"allow":{"until":"` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `","pattern":{"kind":"exact"},"max_uses":3}`
	o.decides(t, "ann", h.Approval, "approve", allow, http.StatusOK)
	o.ended(t, "agent", h, "succeeded")
	until(`{"message":"twice"}`, http.StatusOK)
	line := `{"custom_id":"c%d","server":"demo","tool":"echo","arguments":{"message":"twice"}}` + "\n"
	status, body := ask(t, "POST", o.door+"/batches", fmt.Sprintf(line+line, 1, 2), key("agent"), "Content-Type: application/x-ndjson")
	var b struct{ ID string }
	if err := json.Unmarshal([]byte(body), &b); err != nil || status != http.StatusCreated {
		t.Fatalf("a batch: %d %s", status, body)
	}
	o.ends(t, "/batches/"+b.ID, "completed")
	runs(`{"message":"twice"}`, false)
	// Not offered if more than one person must approve.
	h = o.asked(t, "agent", "sleep", `{"seconds":0.01}`)
	if s := o.view(t, "ann", h.Approval, nil); s.MayNotAllow == "" {
		t.Error("it is offered where two must agree")
	}
	o.decides(t, "ann", h.Approval, "deny", "", http.StatusOK)
}
