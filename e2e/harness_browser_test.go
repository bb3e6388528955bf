package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/callyard/callyard/e2e/browser"
)

var (
	update   = flag.Bool("update", false, "write the pictures of docs/images")
	pictures = flag.String("pictures", "", "folder for a picture of each audited page at each width, in light and dark")
)

// void is an action of the browser that returns nothing.
type void = browser.Void

// startBrowser runs a browser until the test ends.
func startBrowser(t testing.TB) context.Context {
	t.Helper()
	return browser.Start(t)
}

// tab is a page of a browser, with separate cookies.
type tab struct {
	*browser.Tab
	t testing.TB
}

func openTab(in context.Context, t testing.TB, scripts bool) *tab {
	t.Helper()
	p := &tab{browser.Open(in, t, scripts), t}
	p.looks(1280, false)
	return p
}

func (p *tab) do(actions ...void) {
	p.t.Helper()
	p.Do(actions...)
}

// asked evaluates an expression on the page.
func asked[T any](p *tab, expression string, options ...chromedp.EvaluateOption) T {
	p.t.Helper()
	return browser.Ask[T](p.Tab, expression, options...)
}

// text returns the text of the page, for messages.
func (p *tab) text() string { return p.Text() }

func (p *tab) open(url string) {
	p.t.Helper()
	p.Go(url)
}

// sees waits until the condition holds on the page.
func (p *tab) sees(what, condition string) {
	p.t.Helper()
	p.Sees(what, condition)
}

// hasText fails unless the text is on the page.
func (p *tab) hasText(text string) {
	p.t.Helper()
	p.Says(text)
}

// count returns the number of elements that match the selector.
func (p *tab) count(selector string) int {
	p.t.Helper()
	return p.Count(selector)
}

// press presses keys one after the other.
func (p *tab) press(keys ...string) {
	p.t.Helper()
	for _, k := range keys {
		p.do(chromedp.KeyEvent(k))
	}
}

// tabTo presses Tab until an element that matches the selector has the focus.
func (p *tab) tabTo(selector string) {
	p.t.Helper()
	for range 120 {
		if asked[bool](p, fmt.Sprintf(`document.activeElement !== null && document.activeElement.matches(%q)`, selector)) {
			if !asked[bool](p, `document.activeElement.matches(":focus-visible")`) {
				p.t.Errorf("one does not see that the focus is on %s", selector)
			}
			return
		}
		p.press(kb.Tab)
	}
	p.t.Fatalf("Tab does not come to %s; the page is %s", selector, p.text())
}

// looks sets the width and the color scheme of the page.
func (p *tab) looks(width int64, dark bool) {
	p.t.Helper()
	scheme, height := "light", int64(800)
	if dark {
		scheme = "dark"
	}
	options := []chromedp.EmulateViewportOption{}
	if width < 600 {
		height, options = 844, append(options, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	p.do(chromedp.EmulateViewport(width, height, options...), func(ctx context.Context, target *chromedp.Target) (none chromedp.Void, err error) {
		_, err = cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
		return none, err
	})
}

// axeSource returns the source of the accessibility checker.
func axeSource(t testing.TB) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(programs.root, "tools", "npm", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatalf("%v: run the tests with scripts/test.sh, which installs it", err)
	}
	return string(script)
}

// axeFault is a finding of axe.
type axeFault struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// audit checks the page in light and dark from 320 to 1920 pixels: it has no horizontal
// overflow and no serious accessibility fault. With -update and -pictures it takes screenshots.
func (p *tab) audit(name string) {
	p.t.Helper()
	asked[int](p, axeSource(p.t)+"; 0")
	for _, dark := range []bool{false, true} {
		for _, width := range []int64{320, 390, 1280, 1920} {
			p.auditAt(name, width, dark)
		}
	}
	p.looks(1280, false)
}

// fullAxe makes [tab.glance] check every width in light and dark, which takes a second for each.
var fullAxe = os.Getenv("CALLYARD_TEST_AXE") == "full"

// glance is [tab.audit] for the two extremes: dark at 320 pixels, and light at 1920. With fullAxe it
// checks four widths in both schemes. With -update it takes the desktop-only screenshots of docs.
func (p *tab) glance(name string) {
	p.t.Helper()
	asked[int](p, axeSource(p.t)+"; 0")
	for _, width := range []int64{320, 768, 1280, 1920} {
		for _, dark := range []bool{true, false} {
			if fullAxe || width == 320 && dark || width == 1920 && !dark {
				p.auditAt(name, width, dark)
			}
		}
	}
	p.looks(1280, false)
	if *update && slices.Contains(consoleDesktop, name) {
		write(p.t, filepath.Join(programs.root, "docs", "images", name+".png"), p.screenFrom(cmp.Or(consoleFrom[name], "body")))
	}
}

// auditAt is [tab.audit] at one width in one scheme, with axe loaded.
func (p *tab) auditAt(name string, width int64, dark bool) {
	p.t.Helper()
	p.looks(width, dark)
	at := fmt.Sprintf("%s, %d wide, dark: %v", name, width, dark)
	if over := asked[int](p, `document.documentElement.scrollWidth`); over > int(width) {
		wide := asked[string](p, fmt.Sprintf(`[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > %d).map((e) => e.tagName + "." + e.className).slice(0, 8).join(" ")`, width))
		p.t.Errorf("%s: the page is %d wide: %s", at, over, wide)
	}
	var found []axeFault
	raw := asked[string](p, `axe.run(document, {resultTypes: ["violations"], rules: {"target-size": {enabled: true}}}).then((r) => JSON.stringify(r.violations))`, chromedp.EvalAwaitPromise)
	if err := json.Unmarshal([]byte(raw), &found); err != nil {
		p.t.Fatal(err)
	}
	for _, f := range found {
		if f.Impact != "serious" && f.Impact != "critical" && f.ID != "landmark-unique" {
			p.t.Logf("%s: %s (%s): %s: %.300s", at, f.ID, f.Impact, f.Help, f.Nodes[0].HTML)
			continue
		}
		for _, n := range f.Nodes {
			p.t.Errorf("%s: %s (%s): %s\n%s\n%s", at, f.ID, f.Impact, f.Help, n.HTML, n.FailureSummary)
		}
	}
	p.picture(name, width, dark)
}

// decidesOnTheFirstScreen checks that a person can see the effect of a call and decide it
// without scrolling, on a laptop of 1280×800 and on a phone of 390×844.
func (p *tab) decidesOnTheFirstScreen(name string) {
	p.t.Helper()
	for _, width := range []int64{1280, 390} {
		for _, dark := range []bool{false, true} {
			p.looks(width, dark)
			for _, selector := range []string{"h1", "#why", ".detail-main pre.code", "button.approve[name=token]", `button[formaction$="/deny"]`} {
				type bounds struct{ Left, Top, Right, Bottom, Width, Height float64 }
				b := asked[bounds](p, fmt.Sprintf(`(({left, top, right, bottom}) => ({Left: left, Top: top, Right: right, Bottom: bottom, Width: innerWidth, Height: innerHeight}))(document.querySelector(%q).getBoundingClientRect())`, selector))
				if b.Right <= b.Left || b.Bottom <= b.Top || b.Left < 0 || b.Top < 0 || b.Right > b.Width || b.Bottom > b.Height {
					p.t.Errorf("%s, %d wide, dark: %v: %s is not on the first screen: %+v", name, width, dark, selector, b)
				}
			}
		}
	}
	p.looks(1280, false)
}

// picture takes a screenshot of the whole page: with -update, of a light desktop and of a dark
// phone for docs/images; with -pictures, of each width and scheme for a review.
func (p *tab) picture(name string, width int64, dark bool) {
	p.t.Helper()
	if *pictures != "" {
		write(p.t, filepath.Join(*pictures, fmt.Sprintf("%s-%d-dark=%v.png", name, width, dark)), p.screenshot())
	}
	if other := strings.HasPrefix(name, "console-") && !slices.Contains(consolePictures, name); other || !*update || width != 390 && width != 1280 || dark != (width < 600) {
		return
	}
	if dark {
		name += "-phone"
	}
	shot := p.screenshot
	if strings.HasPrefix(name, "console-") {
		shot = p.firstScreen // lists are long
	} else {
		name = "approver-" + name
	}
	write(p.t, filepath.Join(programs.root, "docs", "images", name+".png"), shot())
}

// consolePictures are the console screenshots of docs/images.
var consolePictures = []string{"console-overview", "console-result", "console-calls", "console-batch"}

// consoleDesktop are the screenshots without a phone version in docs/images.
var consoleDesktop = []string{
	"console-servers", "console-fleet", "console-tools", "console-policy", "console-usage", "console-environment",
	"console-keys", "console-audit", "console-state", "console-evaluations", "console-environments", "console-connections", "console-together", "console-dry-run",
}

// consoleFrom maps screenshots of long pages to the element at their top.
var consoleFrom = map[string]string{"console-dry-run": `section[aria-labelledby="draft-title"]`}

// screenshot returns a PNG of the whole page.
func (p *tab) screenshot() string {
	p.t.Helper()
	return p.shot(chromedp.FullScreenshot(100))
}

// shot returns the PNG of a screenshot action.
func (p *tab) shot(take chromedp.Action[[]byte]) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.Ctx, soon)
	defer cancel()
	png, err := chromedp.Run(ctx, take)
	if err != nil {
		p.t.Fatal(err)
	}
	if !bytes.HasPrefix(png, []byte("\x89PNG")) {
		p.t.Fatal("the browser did not take a picture")
	}
	return string(png)
}
