package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// readable lists the axe rules that /docs follows. Its violations of other rules are in the
// library that renders the page.
const readable = `["color-contrast", "aria-required-attr", "aria-command-name", "button-name", "label", "scrollable-region-focusable", "aria-valid-attr-value", "document-title", "html-has-lang"]`

func TestAPIReferenceIsAccessibleAndFitsTheScreen(t *testing.T) {
	t.Parallel()
	up := startUp(t, setup{env: []string{quickStop}})
	in := startBrowser(t)
	for _, place := range []string{"/docs#/operations/create-call", "/docs#/schemas/Call", "/docs"} {
		for _, dark := range []bool{false, true} {
			for _, width := range []int64{1280, 390} {
				at := fmt.Sprintf("%s, %d wide, dark: %v", place, width, dark)
				p := openTab(in, t, true)
				p.looks(width, dark)
				p.open(up.url + place)
				p.sees("the page is drawn and at rest", `document.querySelector("h1") !== null && document.querySelectorAll(".sl-code-highlight, .sl-panel").length > 0 && document.getAnimations().length === 0`)
				var found []string
				raw := asked[string](p, axeSource(t)+`; axe.run(document, {resultTypes: ["violations"], runOnly: `+readable+`}).then((r) => JSON.stringify(r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.html.slice(0, 200) + " " + n.failureSummary))))`, chromedp.EvalAwaitPromise)
				if err := json.Unmarshal([]byte(raw), &found); err != nil {
					t.Fatal(err)
				}
				for _, fault := range found {
					t.Errorf("%s: %s", at, fault)
				}
				if light := asked[int](p, `Number(getComputedStyle(document.querySelector("h1")).color.match(/\d+/)[0])`); dark != (light > 128) {
					t.Errorf("%s: the text has a brightness of %d", at, light)
				}
				if over := asked[int](p, `document.documentElement.scrollWidth`); over > int(width) {
					t.Errorf("%s: the page is %d wide", at, over)
				}
				if width == 390 && asked[int](p, `Math.round(document.querySelector("h1").getBoundingClientRect().left)`) > 40 {
					t.Errorf("%s: the text begins behind the menu", at)
				}
			}
		}
	}
}
