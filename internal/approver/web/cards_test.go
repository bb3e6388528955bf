package web_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// A regression: seven calls of one tool looked the same in the list.
func TestACardShowsTheArguments(t *testing.T) {
	f := open(t, people(), nil)
	large := `{"target":"` + strings.Repeat("x", 64<<10) + `"}`
	var lines strings.Builder
	for i := range 20 {
		fmt.Fprintf(&lines, `%s"key%d":"value %d"`, map[bool]string{true: ","}[i > 0], i, i)
	}
	for _, args := range []string{`{"target":"first"}`, `{"target":"second <b>\u202e"}`, `{` + lines.String() + `}`, large} {
		f.seen(f.hold(args, requester(), nil).ID, ledger.Pending)
	}
	c := f.signedIn("ada")
	for range 2 { // the cached peek looks the same
		body := f.do(c, "GET", "/", "").body
		peeks := regexp.MustCompile(`(?s)<pre class="code peek"[^>]*>(.*?)</pre>`).FindAllStringSubmatch(body, -1)
		if len(peeks) != 3 {
			t.Fatalf("%d cards show arguments:\n%s", len(peeks), body)
		}
		if !strings.Contains(body, "first") || !strings.Contains(body, "second &lt;b&gt;") || strings.Contains(body, "second <b>") {
			t.Errorf("short arguments are not shown as they are:\n%s", body)
		}
		if !strings.Contains(body, "&#34;key0&#34;: &#34;value 0&#34;") || strings.Contains(body, "value 19") || !strings.Contains(body, "17 more lines") {
			t.Errorf("long arguments are not cut after some lines:\n%s", body)
		}
		if !regexp.MustCompile(`65,549 bytes of arguments`).MatchString(body) {
			t.Errorf("large arguments are not named:\n%s", body)
		}
		if strings.Contains(body, strings.Repeat("x", 1000)) {
			t.Error("large arguments are in the list")
		}
	}
}

// A regression: a person who had approved saw a form that could only be refused.
func TestApproverSeesWhichApprovalsAreMissing(t *testing.T) {
	f := open(t, people(), nil)
	a := f.hold(`{"target":"x"}`, requester(), func(r *risk.Approval) { r.Needed = 3 })
	ada, path := f.signedIn("ada"), "/a/"+a.ID
	page := f.do(ada, "GET", string(path), "")
	if strings.Contains(page.body, "You approved on") {
		t.Fatal("before the approval it is there already")
	}
	f.post(ada, string(path)+"/approve", url.Values{"token": {formToken(t, page.body, string(path)+"/approve")}, "digest": {a.Binding.ArgumentsDigest}}, "Origin", f.url)
	page = f.do(ada, "GET", string(path), "")
	if !regexp.MustCompile(`You approved on <time datetime="[^"]+">[^<]+</time>\. 2 more approvals are needed\.`).MatchString(page.body) {
		t.Errorf("the page does not say what is missing:\n%s", page.body)
	}
	if strings.Contains(page.body, `action="`+string(path)+`/approve"`) {
		t.Error("the form to approve is still there")
	}
	if !strings.Contains(page.body, `action="`+string(path)+`/deny"`) {
		t.Error("an approval can no longer be changed into a denial")
	}
	bob := f.signedIn("bob")
	page = f.do(bob, "GET", string(path), "")
	f.post(bob, string(path)+"/approve", url.Values{"token": {formToken(t, page.body, string(path)+"/approve")}, "digest": {a.Binding.ArgumentsDigest}}, "Origin", f.url)
	f.approved(a.ID, 2)
	list := f.do(ada, "GET", "/", "").body
	if !regexp.MustCompile(`You approved on <time [^<]+</time>\. 1 more approval is needed\.`).MatchString(list) {
		t.Errorf("the list does not say what is missing:\n%s", list)
	}
	if strings.Contains(list, `type="checkbox"`) {
		t.Error("the list offers to decide it again")
	}
	once := f.hold(`{"target":"y"}`, requester(), nil)
	f.api("ada", "POST", "/approvals/"+string(once.ID)+"/decisions", decision("approve", once.Binding.ArgumentsDigest, ""))
	if page = f.do(ada, "GET", "/a/"+string(once.ID), ""); !strings.Contains(page.body, "The call is approved. Until it starts, you can still deny the call") {
		t.Errorf("an approved call that has not started: %s", page.body)
	}
}

// approved waits until the local ledger has that number of approvals of a call.
func (f *fabric) approved(id schema.ApprovalID, want int) {
	f.t.Helper()
	changed := make(chan struct{}, 1)
	defer f.ledger.Watch(schema.AllTenants(), func(*ledger.Approval) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	late := time.After(time.Minute)
	for {
		if len(f.ledger.Where(schema.AllTenants(), func(a *ledger.Approval) bool {
			return a.ID == id && a.State == ledger.Pending && len(a.Decisions) == want
		})) > 0 {
			return
		}
		select {
		case <-changed:
		case <-late:
			f.t.Fatalf("%s does not come to %d decisions", id, want)
		}
	}
}

func TestThePageSaysWhenACallEscalates(t *testing.T) {
	f := open(t, people(), nil)
	a := f.hold(`{"target":"x"}`, requester(), func(r *risk.Approval) {
		r.EscalateTo, r.EscalateAfter = []string{"bosses"}, 2*time.Minute
	})
	f.seen(a.ID, ledger.Pending)
	c, at := f.signedIn("ada"), a.Created.Add(2*time.Minute).UTC().Format(time.RFC3339)
	if body := f.do(c, "GET", "/a/"+string(a.ID), "").body; !strings.Contains(body, `To bosses on <time datetime="`+at+`">`) {
		t.Errorf("the page does not say that bosses are asked at %s:\n%s", at, body)
	}
	if body := f.do(c, "GET", "/", "").body; !strings.Contains(body, `Escalates to bosses on <time datetime="`+at+`">`) {
		t.Errorf("the list does not:\n%s", body)
	}
}
