package stories

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/e2e/browser"
)

func TestAHeldCallIsApprovedOnThePageAndRunsOnce(t *testing.T) {
	f := sharedFabric(t)
	c, l := caller(t, f, f.URL()), newLedger(t)
	l.open(t)
	h := held(t, c, "office", "effect", l.arguments("approved"))

	p := browser.Open(browser.Start(t), t, true)
	p.Go(f.ApproverURL())
	p.Do(chromedp.SendKeys(chromedp.CSS("#key"), f.PersonKey+kb.Enter))
	p.Sees("the call in the list", fmt.Sprintf(`document.querySelector('a[href="/a/%s"]') !== null`, h.ApprovalID))
	// Click the link by script: calls of other tests could move the rows of the list between
	// locating and clicking.
	browser.Ask[bool](p, fmt.Sprintf(`document.querySelector('a[href="/a/%s"]').click() === undefined`, h.ApprovalID))
	p.Sees("the page of the call", `document.querySelector("#decide") !== null`)
	p.Says("approved") // the arguments are shown
	if got := l.count(t, "approved"); got != 0 {
		t.Errorf("looking at the page ran the call %d times", got)
	}
	p.Do(chromedp.Click(chromedp.CSS(`form[action$="/approve"] button`)))
	p.Sees("the word that it is recorded", `document.querySelector(".notice.success") !== null`)

	end := ended(t, c, string(h.CallID))
	if end.State != callyard.CallStateSucceeded || len(end.Decisions) != 1 {
		t.Errorf("the call ends as %+v", end)
	}
	if got := l.count(t, "approved"); got != 1 {
		t.Errorf("it ran %d times", got)
	}
}
