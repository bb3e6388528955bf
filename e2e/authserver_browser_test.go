package e2e

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestProgramAccessIsRevokedByKeyboard gives a program access, and ends that on the page with the
// keyboard only, with and without scripts.
func TestProgramAccessIsRevokedByKeyboard(t *testing.T) {
	t.Parallel()
	o := openIssuing(t, "http://127.0.0.1/callback")
	browser := startBrowser(t)
	for _, scripts := range []bool{true, false} {
		o.agree(t, o.issuer+"/oauth/authorize?response_type=code&client_id=app&redirect_uri=http%3A%2F%2F127.0.0.1%2Fcallback&scope=tools%3Aread+tools%3Acall&code_challenge=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU&code_challenge_method=S256&resource="+o.url+"/mcp")
		p := openTab(browser, t, scripts)
		p.open(o.issuer + "/grants")
		p.sees("the sign-in", `document.querySelector("input[name=key]") !== null`)
		p.do(chromedp.SendKeys(chromedp.CSS("input[name=key]"), o.key+kb.Enter))
		p.sees("the page of programs", `location.pathname === "/grants" && document.querySelector("h1").textContent === "Programs"`)
		p.hasText("Call all tools in your name")
		if scripts {
			p.glance("programs")
		}
		p.tabTo(`form[action^="/grants/"] button`)
		p.press(kb.Enter)
		p.sees("that it has ended", `document.querySelector(".notice.success") !== null && document.querySelector('form[action^="/grants/"]') === null`)
		p.do(chromedp.Click(chromedp.CSS(`form[action="/sign-out"] button`)))
		p.sees("the sign-in again", `location.pathname === "/sign-in"`)
	}
}
