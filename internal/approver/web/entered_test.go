package web_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// The input of a person is shown again if their session ended before they submitted it, and nothing
// is decided before they see the request again.
func TestFormIsRestoredAfterSessionEnds(t *testing.T) {
	f := open(t, people(), nil)
	a := f.hold(`{"target":"x"}`, requester(), nil)
	c := f.signedIn("ada")
	path := "/a/" + string(a.ID)
	page := f.do(c, "GET", path, "").body
	form := url.Values{
		"token": {formToken(t, page, path+"/edit")}, "digest": {a.Binding.ArgumentsDigest}, "key": {"a-secret"},
		"arguments": {"{\r\n  \"target\": \"typed <b>\"\r\n}"}, "reason": {"a long \"reason\""},
	}
	f.post(c, "/sign-out", url.Values{"token": {formToken(t, page, "/sign-out")}})

	ended := f.post(c, path+"/edit", form, "Referer", f.url+path)
	if ended.status != http.StatusUnauthorized {
		t.Errorf("without a session: %d", ended.status)
	}
	for _, want := range []string{"Your session has ended", `typed &lt;b&gt;`, `a long &#34;reason&#34;`, `href="/sign-in?next=` + url.QueryEscape(path) + `" target="_blank"`, `action="` + path + `/edit"`} {
		if !strings.Contains(ended.body, want) {
			t.Errorf("the page lacks %s: %s", want, ended.body)
		}
	}
	if strings.Contains(ended.body, "a-secret") || strings.Contains(ended.body, form.Get("token")) {
		t.Errorf("the page repeats a secret: %s", ended.body)
	}

	// Another person signs in and continues with that form, which no longer has a token.
	form.Del("token")
	back := f.post(f.signedIn("bob"), path+"/edit", form)
	if back.status != http.StatusForbidden {
		t.Errorf("under another session: %d", back.status)
	}
	for _, want := range []string{"nothing was recorded", `typed &lt;b&gt;`, `value="a long &#34;reason&#34;"`, `data-self="` + path + `"`} {
		if !strings.Contains(back.body, want) {
			t.Errorf("the page lacks %s: %s", want, back.body)
		}
	}
	if is := f.state(a.ID); is.State != ledger.Pending || len(is.Decisions) > 0 {
		t.Errorf("something was decided: %+v", is)
	}
	form.Set("token", formToken(t, back.body, path+"/edit"))
	if got := f.post(c, path+"/edit", form); got.status == http.StatusSeeOther {
		t.Error("the token of another person counts")
	}
}

// A form without a name for one of its fields needs no session, and must not make the server panic.
func TestFieldWithoutANameIsNotRepeated(t *testing.T) {
	f := open(t, people(), nil)
	a := f.hold(`{"target":"x"}`, requester(), nil)
	got := f.post(f.browser(), "/a/"+string(a.ID)+"/approve", url.Values{"": {"x"}, "reason": {"typed"}})
	if got.status != http.StatusUnauthorized || !strings.Contains(got.body, "typed") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// If the page of a form cannot show it again, the error shows the input.
func TestAFormThatFailsShowsWhatWasEntered(t *testing.T) {
	f := open(t, people(), nil)
	c := f.signedIn("ada")
	for what, who := range map[string]*http.Client{"no session": f.browser(), "no token": c} {
		got := f.post(who, "/permissions/perm_1/revoke", url.Values{"reason": {"typed here"}}, "Referer", f.url+"/permissions")
		if got.status != http.StatusUnauthorized && got.status != http.StatusForbidden || !strings.Contains(got.body, "typed here") || !strings.Contains(got.body, "%2Fpermissions") && !strings.Contains(got.body, `href="/permissions"`) {
			t.Errorf("%s: %d %s", what, got.status, got.body)
		}
		if strings.Contains(got.body, ">Continue<") {
			t.Errorf("%s: a form that nothing takes back can be sent again", what)
		}
	}
}

// A double click submits a form twice. The person sees the response to the second one.
func TestRepeatedDecisionIsNotRefused(t *testing.T) {
	f := open(t, people(), nil)
	for _, kind := range []string{"approve", "deny", "revoke"} {
		a := f.hold(`{"target":"x"}`, requester(), nil)
		c := f.signedIn("ada")
		path := "/a/" + string(a.ID)
		form := url.Values{"token": {f.web.FormToken(cookieOf(t, f, c), path+"/"+kind)}, "digest": {a.Binding.ArgumentsDigest}, "reason": {"why"}}
		for i := range 2 {
			if got := f.post(c, path+"/"+kind, form); got.status != http.StatusSeeOther {
				t.Errorf("%s, time %d: %d %s", kind, i+1, got.status, got.body)
			}
		}
		if is := f.state(a.ID); len(is.Decisions) != 1 {
			t.Errorf("%s is recorded %d times", kind, len(is.Decisions))
		}
		// A decision that differs from the record is refused, and so is the same decision of
		// another person.
		form.Set("reason", "another")
		if got := f.post(c, path+"/"+kind, form); got.status == http.StatusSeeOther {
			t.Errorf("%s with another reason counts", kind)
		}
		bob := f.signedIn("bob")
		form.Set("reason", "why")
		form.Set("token", f.web.FormToken(cookieOf(t, f, bob), path+"/"+kind))
		if got := f.post(bob, path+"/"+kind, form); got.status != http.StatusConflict || !strings.Contains(got.body, `data-self="`+path+`"`) {
			t.Errorf("%s of somebody else: %d", kind, got.status)
		}
	}
}

// Under a new rule, an earlier approval is void. The same form must not look recorded then.
func TestVoidDecisionIsNotReportedAsRecorded(t *testing.T) {
	f := open(t, people(), nil)
	a := f.hold(`{"target":"x"}`, requester(), func(r *risk.Approval) { r.Needed = 2 })
	c := f.signedIn("ada")
	path := "/a/" + string(a.ID)
	form := url.Values{"token": {f.web.FormToken(cookieOf(t, f, c), path+"/approve")}, "digest": {a.Binding.ArgumentsDigest}}
	if got := f.post(c, path+"/approve", form); got.status != http.StatusSeeOther {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if got := f.do(c, "GET", path+"?done=approve", ""); !strings.Contains(got.body, "Your approval is recorded.") {
		t.Errorf("the page does not report the approval: %s", got.body)
	}
	rule, err := json.Marshal(&risk.Approval{By: risk.ByGroups, Groups: []string{"bosses"}, Needed: 2, Expires: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ledger.Change(t.Context(), schema.DefaultTenant, a.ID, func(a *ledger.Approval) error {
		a.Restart(ledger.Restart{At: time.Now().UTC(), From: len(a.Decisions), Level: 2, PolicyVersion: "v2", Reason: "The policy has changed."}, rule, nil, a.Expires)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := f.post(c, path+"/approve", form); got.status != http.StatusForbidden || !strings.Contains(got.body, "You are not in any of the groups") {
		t.Errorf("the approval that does not count: %d %s", got.status, got.body)
	}
	if got := f.do(c, "GET", path+"?done=approve", ""); strings.Contains(got.body, "Your approval is recorded.") {
		t.Error("the page reports the void approval as recorded")
	}
}

// An edit of somebody else voids an approval, too.
func TestApprovalOfOtherArgumentsIsNotReportedAsRecorded(t *testing.T) {
	f := open(t, people(), nil)
	a := f.hold(`{"target":"x"}`, requester(), func(r *risk.Approval) { r.Needed = 3 })
	c := f.signedIn("ada")
	path := "/a/" + string(a.ID)
	form := url.Values{"token": {f.web.FormToken(cookieOf(t, f, c), path+"/approve")}, "digest": {a.Binding.ArgumentsDigest}}
	if got := f.post(c, path+"/approve", form); got.status != http.StatusSeeOther {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if got := f.api("bob", "POST", "/approvals/"+string(a.ID)+"/decisions", decision("edit", a.Binding.ArgumentsDigest, `,"arguments":{"target":"y"}`)); got.status != http.StatusOK {
		t.Fatal(got.body)
	}
	if got := f.post(c, path+"/approve", form); got.status != http.StatusConflict || !strings.Contains(got.body, "The arguments have changed") {
		t.Errorf("an approval of the former arguments: %d %s", got.status, got.body)
	}
	if got := f.do(c, "GET", path+"?done=approve", ""); strings.Contains(got.body, "Your approval is recorded.") {
		t.Error("the page reports the void approval as recorded")
	}
}

// People send the address of a page to others, who have decided nothing.
func TestPageReportsOnlyRecordedDecisionsOfThePerson(t *testing.T) {
	f := open(t, people(), nil)
	a := f.hold(`{"target":"x"}`, requester(), func(r *risk.Approval) { r.Needed = 2 })
	path := "/a/" + string(a.ID)
	if got := f.api("ada", "POST", "/approvals/"+string(a.ID)+"/decisions", decision("edit", a.Binding.ArgumentsDigest, `,"arguments":{"target":"y"}`)); got.status != http.StatusOK {
		t.Fatal(got.body)
	}
	ada, bob := f.do(f.signedIn("ada"), "GET", path+"?done=edit", "").body, f.signedIn("bob")
	if !strings.Contains(ada, "Your edit is recorded. If the call is approved, it runs with the edited arguments.") {
		t.Errorf("the page does not say that the call waits: %s", ada)
	}
	for _, kind := range []string{"approve", "allow", "deny", "edit", "extend", "revoke", "<b>"} {
		if page := f.do(bob, "GET", path+"?done="+url.QueryEscape(kind), ""); page.status != http.StatusOK || strings.Contains(page.body, `role="status">`+"Your") || strings.Contains(page.body, "notice success") {
			t.Errorf("%s: the page reports a decision that nobody made: %s", kind, page.body)
		}
	}
}

// Two people decide at the same time: the input of the second one is not lost with the form.
func TestAFormOfADecidedRequestShowsWhatWasEntered(t *testing.T) {
	f := open(t, people(), nil)
	for kind, fields := range map[string]url.Values{
		"edit": {"reason": {"typed reason"}, "arguments": {`{"target":"typed arguments"}`}}, "approve": {"reason": {"typed reason"}}, "deny": {"reason": {"typed reason"}},
	} {
		a := f.hold(`{"target":"x"}`, requester(), nil)
		c := f.signedIn("ada")
		path := "/a/" + string(a.ID)
		fields.Set("digest", a.Binding.ArgumentsDigest)
		fields.Set("token", formToken(t, f.do(c, "GET", path, "").body, path+"/"+kind))
		if got := f.api("bob", "POST", "/approvals/"+string(a.ID)+"/decisions", decision("deny", "", "")); got.status != http.StatusOK {
			t.Fatal(got.body)
		}
		got := f.post(c, path+"/"+kind, fields)
		if got.status == http.StatusSeeOther || !strings.Contains(got.body, "already been decided") {
			t.Errorf("%s: %d %s", kind, got.status, got.body)
		}
		if !strings.Contains(got.body, "typed reason") || kind == "edit" && !strings.Contains(got.body, "typed arguments") {
			t.Errorf("%s: the page lacks the input: %s", kind, got.body)
		}
	}
}

// The form has the arguments indented, which the limit must not count.
func TestArgumentsNearTheLimitCanBeEdited(t *testing.T) {
	f := open(t, people(), nil)
	rows := strings.Repeat(`{"a":1},`, 60_000)
	a := f.hold(`{"target":"x","rows":[`+strings.TrimSuffix(rows, ",")+`]}`, requester(), nil)
	c := f.signedIn("ada")
	path := "/a/" + string(a.ID)
	var shown strings.Builder
	out := json.NewEncoder(&shown)
	out.SetIndent("", "  ")
	var value any
	if err := json.Unmarshal([]byte(`{"rows":[`+strings.TrimSuffix(rows, ",")+`],"target":"edited"}`), &value); err != nil {
		t.Fatal(err)
	}
	if err := out.Encode(value); err != nil || shown.Len() < 1<<20 {
		t.Fatalf("%v, %d bytes", err, shown.Len())
	}
	form := url.Values{"token": {formToken(t, f.do(c, "GET", path, "").body, path+"/edit")}, "digest": {a.Binding.ArgumentsDigest}, "arguments": {shown.String()}}
	if got := f.post(c, path+"/edit", form); got.status != http.StatusSeeOther {
		t.Fatalf("%d %.2000s", got.status, got.body)
	}
	if is := f.state(a.ID); is.Edited == nil || is.Edited.Size >= int64(a.ArgumentsSize)+10 {
		t.Errorf("the edit is recorded as %+v", is.Edited)
	}
}

// A refused form has the address of its target, which people reload and send to others.
func TestTheAddressOfARefusedFormLeadsToItsRequest(t *testing.T) {
	f := open(t, people(), nil)
	path := "/a/" + string(f.hold(`{"target":"x"}`, requester(), nil).ID)
	if got := f.do(f.signedIn("ada"), "GET", path+"/edit", ""); got.status != http.StatusSeeOther || got.header.Get("Location") != path {
		t.Errorf("%d to %q", got.status, got.header.Get("Location"))
	}
	if got := f.do(f.browser(), "GET", path+"/edit", ""); got.header.Get("Location") != "/sign-in?next="+url.QueryEscape(path) {
		t.Errorf("without a session it leads to %q", got.header.Get("Location"))
	}
	ended := f.post(f.browser(), path+"/edit", url.Values{"reason": {"x"}}, "Referer", f.url+path+"/edit")
	if !strings.Contains(ended.body, `href="/sign-in?next=`+url.QueryEscape(path)+`"`) {
		t.Errorf("a refused form of an ended session leads elsewhere: %s", ended.body)
	}
}
