package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// picks returns the selectable calls of a page, with the displayed digests.
func picks(page string) url.Values {
	form := url.Values{}
	for _, m := range regexp.MustCompile(`name="(pick\.[^"]+)" value="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		form.Set(m[1], m[2])
	}
	return form
}

func TestBulkReviewDecidesSeveralCallsOfARequester(t *testing.T) {
	f := open(t, people(), nil)
	var ids []schema.ApprovalID
	for i := range 4 {
		ids = append(ids, f.hold(fmt.Sprintf(`{"target":"place-%d"}`, i), requester(), nil).ID)
	}
	other := f.hold(`{"target":"elsewhere"}`, schema.Principal{Name: "bob"}, nil)
	c := f.signedIn("ada")
	if list := f.do(c, "GET", "/", ""); !strings.Contains(list.body, `href="/review?requester=agent">Review 4 calls from agent together`) {
		t.Errorf("the list does not offer them: %s", list.body)
	}
	page := f.do(c, "GET", "/review?requester=agent", "")
	form := picks(page.body)
	for i := range ids {
		if !strings.Contains(page.body, fmt.Sprintf("place-%d", i)) {
			t.Errorf("the arguments of call %d are not on the page", i)
		}
	}
	if len(form) != 4 || strings.Contains(page.body, "elsewhere") {
		t.Fatalf("the page offers %v", form)
	}
	// In the meantime another person has decided one call and edited another.
	if got := f.api("bob", "POST", "/approvals/"+string(ids[1])+"/decisions", decision("deny", "", "")); got.status != http.StatusOK {
		t.Fatal(got.body)
	}
	form.Set("pick."+string(ids[2]), schema.Digest([]byte(`{"target":"shown otherwise"}`)))
	form.Set("token", formToken(t, page.body, "/review"))
	form.Set("kind", "approve")
	form.Set("reason", "all of them")
	got := f.post(c, "/review", form, "Origin", f.url)
	if got.status != http.StatusOK || !strings.Contains(got.body, "2 of 4 approved") || strings.Count(got.body, "Not recorded.") != 2 || strings.Count(got.body, "Recorded.") != 2 {
		t.Errorf("%d %s", got.status, got.body)
	}
	for i, want := range []ledger.State{ledger.Approved, ledger.Denied, ledger.Pending, ledger.Approved} {
		is := f.state(ids[i])
		if is.State != want || want == ledger.Approved && (is.Decisions[0].Reason != "all of them" || is.Decisions[0].By != "ada" || is.Decisions[0].Channel != "web") {
			t.Errorf("call %d: %+v", i, is)
		}
	}
	if is := f.state(other.ID); is.State != ledger.Pending {
		t.Errorf("one that nobody chose: %+v", is)
	}
}

func TestIncompleteBulkReviewFormDecidesNothing(t *testing.T) {
	f := open(t, people(), nil)
	a := f.hold(`{"target":"x"}`, requester(), nil)
	mine := f.hold(`{"target":"mine"}`, schema.Principal{Name: "ada"}, nil)
	c := f.signedIn("ada")
	page := f.do(c, "GET", "/review?id="+string(a.ID)+"&id="+string(mine.ID)+"&id="+string(a.ID), "")
	if form := picks(page.body); len(form) != 1 || form.Get("pick."+string(a.ID)) == "" || !strings.Contains(page.body, "You requested this call") {
		t.Errorf("%v", form)
	}
	token := formToken(t, page.body, "/review")
	for what, form := range map[string]url.Values{
		"no kind":      {"token": {token}, "pick." + string(a.ID): {a.Binding.ArgumentsDigest}},
		"another kind": {"token": {token}, "kind": {"revoke"}, "pick." + string(a.ID): {a.Binding.ArgumentsDigest}},
		"no call":      {"token": {token}, "kind": {"approve"}},
		"one twice":    {"token": {token}, "kind": {"approve"}, "pick." + string(a.ID): {a.Binding.ArgumentsDigest, a.Binding.ArgumentsDigest}},
		"no token":     {"kind": {"approve"}, "pick." + string(a.ID): {a.Binding.ArgumentsDigest}},
		"of another":   {"token": {formToken(t, f.do(c, "GET", "/a/"+string(a.ID), "").body, "/a/"+string(a.ID)+"/approve")}, "kind": {"approve"}, "pick." + string(a.ID): {a.Binding.ArgumentsDigest}},
	} {
		if got := f.post(c, "/review", form); got.status != http.StatusBadRequest && got.status != http.StatusForbidden {
			t.Errorf("%s: %d %s", what, got.status, got.body)
		}
	}
	many := url.Values{"token": {token}, "kind": {"deny"}, "pick." + string(a.ID): {""}}
	for i := range 50 {
		many.Set(fmt.Sprintf("pick.appr_%d", i), "")
	}
	if got := f.post(c, "/review", many); got.status != http.StatusBadRequest {
		t.Errorf("51 at once: %d", got.status)
	}
	for _, to := range []string{"/review", "/review?requester=nobody", "/review?color=red"} {
		if got := f.do(c, "GET", to, ""); got.status != http.StatusBadRequest {
			t.Errorf("%s: %d", to, got.status)
		}
	}
	for _, a := range []*ledger.Approval{a, mine} {
		if is := f.state(a.ID); is.State != ledger.Pending || len(is.Decisions) > 0 {
			t.Errorf("%+v", is)
		}
	}
	// The person's own call is refused, the calls of others are not.
	form := url.Values{"token": {token}, "kind": {"deny"}, "preset": {"Wrong time"}, "pick." + string(a.ID): {""}, "pick." + string(mine.ID): {""}}
	if got := f.post(c, "/review", form); got.status != http.StatusOK || !strings.Contains(got.body, "1 of 2 denied") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if is := f.state(a.ID); is.State != ledger.Denied || is.Decisions[0].Reason != "Wrong time" {
		t.Errorf("%+v", is)
	}
	if is := f.state(mine.ID); is.State != ledger.Pending {
		t.Errorf("one's own: %+v", is)
	}
}

func TestBulkReviewPageListsOnlyCallsThatFit(t *testing.T) {
	f := open(t, people(), nil)
	for range 6 {
		f.hold(`{"target":"`+strings.Repeat("x", 1_000_000)+`"}`, requester(), nil)
	}
	page := f.do(f.signedIn("ada"), "GET", "/review?requester=agent", "")
	if n := len(picks(page.body)); n != 4 || !strings.Contains(page.body, "2 more calls do not fit") {
		t.Errorf("%d calls are on the page", n)
	}
}

// Calls that the person has approved already would take the places of those that wait for them.
func TestBulkReviewLeavesOutCallsThatThePersonApproved(t *testing.T) {
	f := open(t, people(), nil)
	var ids []schema.ApprovalID
	for i := range 3 {
		ids = append(ids, f.hold(fmt.Sprintf(`{"target":"place-%d"}`, i), requester(), func(r *risk.Approval) { r.Needed = 2 }).ID)
	}
	c := f.signedIn("ada")
	a := f.state(ids[0])
	if got := f.api("ada", "POST", "/approvals/"+string(a.ID)+"/decisions", decision("approve", a.Binding.ArgumentsDigest, "")); got.status != http.StatusOK {
		t.Fatal(got.body)
	}
	f.approved(a.ID, 1)
	if list := f.do(c, "GET", "/", ""); !strings.Contains(list.body, "Review 2 calls from agent together") {
		t.Errorf("the list does not offer the two others: %s", list.body)
	}
	page := f.do(c, "GET", "/review?requester=agent", "").body
	if !strings.Contains(page, "<h1>Review 2 calls</h1>") || strings.Contains(page, "place-0") || len(picks(page)) != 2 {
		t.Errorf("the page has others: %s", page)
	}
	page = f.do(c, "GET", "/review?id="+string(ids[2])+"&id="+string(ids[1])+"&id="+string(ids[2]), "").body
	if i, k := strings.Index(page, "place-2"), strings.Index(page, "place-1"); i < 0 || k < i || len(picks(page)) != 2 {
		t.Errorf("the page does not have the selected calls in the order of the list: %s", page)
	}
}

func TestEachDecisionOfAListGetsItsResult(t *testing.T) {
	f := open(t, people(), nil)
	a, b, c, d := f.hold(`{"target":"a"}`, requester(), nil), f.hold(`{"target":"b"}`, requester(), nil), f.hold(`{"target":"c"}`, requester(), nil),
		f.hold(`{"target":"d"}`, requester(), func(r *risk.Approval) { r.Groups = []string{"others"} })
	one := func(id schema.ApprovalID, kind, digest, more string) string {
		return fmt.Sprintf(`{"id":%q,"kind":%q,"digest":%q%s}`, id, kind, digest, more)
	}
	good := one(a.ID, "approve", a.Binding.ArgumentsDigest, "")
	for what, body := range map[string]string{
		"no list": `{}`, "no object": `[` + good + `]`, "nothing": `{"decisions":[]}`, "something else": `{"decisions":[` + good + `],"x":1}`,
		"one twice": `{"decisions":[` + good + `,` + good + `]}`, "no id": `{"decisions":[` + good + `,{"kind":"deny"}]}`, "null": `{"decisions":[` + good + `,null]}`,
		"an unknown member": `{"decisions":[` + good + `,` + one(b.ID, "deny", "", `,"x":1`) + `]}`, "a key twice": `{"decisions":[` + good + `],"decisions":[]}`,
		"too many": `{"decisions":[` + strings.Repeat(good+",", 50) + good + `]}`,
	} {
		if got := f.api("ada", "POST", "/decisions", body); got.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", what, got.status, got.body)
		}
	}
	if is := f.state(a.ID); is.State != ledger.Pending {
		t.Fatalf("a list that cannot be read decided: %+v", is)
	}
	body := `{"decisions":[` + strings.Join([]string{
		good, one(b.ID, "approve", "sha256:other", ""), one(c.ID, "edit", c.Binding.ArgumentsDigest, `,"arguments":{"target":"less"}`),
		one(d.ID, "deny", "", ""), one("appr_nope", "deny", "", ""),
	}, ",") + `]}`
	var got struct {
		Results []struct {
			ID       schema.ApprovalID
			Status   int
			Approval *struct{ State string }
			Problem  *struct{ Status int }
		}
	}
	raw := f.api("ada", "POST", "/decisions", body)
	if err := json.Unmarshal([]byte(raw.body), &got); err != nil || raw.status != http.StatusOK || len(got.Results) != 5 {
		t.Fatalf("%d %s", raw.status, raw.body)
	}
	for i, want := range []struct {
		id     schema.ApprovalID
		state  string
		status int
	}{{a.ID, "approved", 200}, {b.ID, "", 409}, {c.ID, "approved", 200}, {d.ID, "", 404}, {"appr_nope", "", 404}} {
		r := got.Results[i]
		if r.ID != want.id || r.Status != want.status || (r.Approval != nil) != (want.status == 200) || (r.Problem != nil) == (want.status == 200) ||
			r.Approval != nil && r.Approval.State != want.state || r.Problem != nil && r.Problem.Status != want.status {
			t.Errorf("%d: %s", i, raw.body)
		}
	}
	if got := f.do(f.signedIn("ada"), "POST", "/decisions", `{"decisions":[`+one(b.ID, "deny", "", "")+`]}`, "Content-Type", "application/json"); got.status != http.StatusUnauthorized {
		t.Errorf("with a cookie: %d", got.status)
	}
}

// A person who reloads the result of a review sends the form again.
func TestRepeatedBulkReviewIsNotRefused(t *testing.T) {
	f := open(t, people(), nil)
	for _, kind := range []string{"approve", "deny"} {
		a, b := f.hold(`{"target":"x"}`, requester(), nil), f.hold(`{"target":"y"}`, requester(), func(r *risk.Approval) { r.Needed = 2 })
		c := f.signedIn("ada")
		page := f.do(c, "GET", "/review?id="+string(a.ID)+"&id="+string(b.ID), "")
		form := picks(page.body)
		form.Set("token", formToken(t, page.body, "/review"))
		form.Set("kind", kind)
		form.Set("reason", "why")
		for i := range 2 {
			if got := f.post(c, "/review", form); got.status != http.StatusOK || !strings.Contains(got.body, "2 of 2") || strings.Contains(got.body, "Not recorded.") {
				t.Errorf("%s, time %d: %d %s", kind, i+1, got.status, got.body)
			}
		}
		for _, id := range []schema.ApprovalID{a.ID, b.ID} {
			if is := f.state(id); len(is.Decisions) != 1 {
				t.Errorf("%s is recorded %d times", kind, len(is.Decisions))
			}
		}
		if got := f.post(f.signedIn("bob"), "/review", form); strings.Contains(got.body, "2 of 2") {
			t.Errorf("%s of somebody else counts", kind)
		}
	}
}
