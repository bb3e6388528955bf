package e2e

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func TestTheFocusSurvivesUpdates(t *testing.T) {
	t.Parallel()
	o := openApprovalFabric(t)
	var calls []held
	for i := range 3 {
		calls = append(calls, o.write(t, "billing", fmt.Sprintf("%d.txt", i), "x\n"))
	}
	p := openTab(startBrowser(t), t, true)
	p.open(o.pages)
	p.do(chromedp.SendKeys(chromedp.CSS("#key"), "ada"+kb.Enter))
	p.sees("the list", `document.querySelectorAll(".request").length === 3`)
	p.tabTo(fmt.Sprintf(`a[href="/a/%s"]`, calls[1].ApprovalID))
	asked[bool](p, `(marked = document.activeElement) !== null`)
	o.approve(t, "ben", calls[0].ApprovalID, `"kind":"deny"`)
	p.sees("that the call above is gone", `document.querySelectorAll(".request").length === 2`)
	if !asked[bool](p, `document.activeElement === marked && marked.isConnected`) {
		t.Error("the focus does not stay on the same element")
	}
	// The focused call disappears: the focus moves to the next call, where Enter does nothing, and
	// remains there.
	o.approve(t, "ben", calls[1].ApprovalID, `"kind":"deny"`)
	p.sees("that the focused call is gone", `document.querySelectorAll(".request").length === 1`)
	p.press(kb.Enter)
	next := fmt.Sprintf(`document.activeElement.matches("li:has(a[href='/a/%s'])")`, calls[2].ApprovalID)
	o.write(t, "billing", "late.txt", "x\n")
	p.sees("a late call", `document.querySelectorAll(".request").length === 2`)
	if !asked[bool](p, next+` && location.pathname === "/"`) {
		t.Errorf("after the focused call went, the focus is on %s", asked[string](p, `document.activeElement.outerHTML`))
	}
	p.press(kb.Tab)
	if !asked[bool](p, fmt.Sprintf(`document.activeElement.matches('a[href="/a/%s"]')`, calls[2].ApprovalID)) {
		t.Errorf("Tab comes to %s", asked[string](p, `document.activeElement.outerHTML`))
	}
}

// Figures that link to the same page are different elements.
func TestFocusStaysOnAFigureWithASharedLink(t *testing.T) {
	t.Parallel()
	d, pages := consoleFabric(t)
	p := openTab(startBrowser(t), t, true)
	p.open(pages + "/console")
	p.sees("a rate", `!document.querySelector(".figure-value").textContent.includes("unknown")`)
	asked[bool](p, `(marked = [...document.querySelectorAll(".figures a")].find((a) => a.textContent.includes("Errors per second"))) !== undefined && (marked.focus(), true)`)
	before := asked[string](p, `document.querySelector(".figures").textContent`)
	for range 20 {
		d.ask(t, "POST", toolPath("crm", "echo"), `{"text":"x"}`)
	}
	p.sees("other figures", fmt.Sprintf(`document.querySelector(".figures").textContent !== %q`, before))
	if got := asked[string](p, `document.activeElement.textContent`); !asked[bool](p, `document.activeElement === marked && marked.isConnected`) {
		t.Errorf("the focus is on %q", got)
	}
}

// What is pressed is what was focused: a button does not become one that does something else.
func TestAFocusedButtonDoesNotBecomeAnother(t *testing.T) {
	t.Parallel()
	d, pages := consoleFabric(t)
	id := d.ask(t, "POST", toolPath("crm", "sleep"), `{"ms":3600000}`, "Prefer: respond-async").header.Get("Callyard-Call-Id")
	p := openTab(startBrowser(t), t, true)
	p.open(pages + "/console/call?id=" + id)
	p.sees("that the call can be canceled", `document.querySelector("button[value=cancel]") !== null`)
	asked[bool](p, `((marked = document.querySelector("button[value=cancel]")).focus(), true)`)
	d.ask(t, "POST", "/calls/"+id+"/cancel", "")
	p.sees("that it ended", `document.querySelector("button[value=done]") !== null`)
	if asked[bool](p, `marked.isConnected`) || !asked[bool](p, `document.activeElement.matches("[data-part=acts]")`) {
		t.Errorf("the focus is on %s", asked[string](p, `document.activeElement.outerHTML`))
	}
}
