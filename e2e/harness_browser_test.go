package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var update = flag.Bool("update", false, "write the pictures of docs/images")

// void is an action of the browser that returns nothing.
type void = chromedp.Action[chromedp.Void]

// startBrowser runs a browser until the test ends.
func startBrowser(t testing.TB) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Fatal("no chromium: run the tests with scripts/test.sh, which installs it")
	}
	// It comes to pages of this test only, so it can do without its sandbox, which
	// a container does not give.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()), chromedp.Flag("lang", "en-US"))
	all, cancelAll := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(all)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("starting %s: %v", path, err)
	}
	t.Cleanup(func() {
		ending, stop := context.WithTimeout(ctx, stopWithin)
		defer stop()
		if err := chromedp.Cancel(ending); err != nil {
			t.Errorf("ending the browser: %v", err)
		}
		cancel()
		cancelAll()
		chromedp.FromContext(ctx).Allocator.Wait()
	})
	return ctx
}

// tab is a page of a browser, with cookies of its own.
type tab struct {
	t   testing.TB
	ctx context.Context
}

func openTab(browser context.Context, t testing.TB, scripts bool) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	// Made with a deadline, a tab would end with it.
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("opening a tab: %v", err)
	}
	p := &tab{t, ctx}
	if !scripts {
		p.do(func(ctx context.Context, target *chromedp.Target) (none chromedp.Void, err error) {
			_, err = cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
			return none, err
		})
	}
	p.looks(1280, false)
	return p
}

func (p *tab) do(actions ...void) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, soon)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatalf("%v; the page is %s", err, p.text())
	}
}

// asked evaluates an expression on the page.
func asked[T any](p *tab, expression string, options ...chromedp.EvaluateOption) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, soon)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, options...))
	if err != nil {
		p.t.Fatalf("asking the page %.200s: %v", expression, err)
	}
	return v
}

// text is what is on the page, for messages.
func (p *tab) text() string {
	ctx, cancel := context.WithTimeout(p.ctx, soon)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + (document.body ? document.body.innerText : "")`))
	if err != nil {
		return err.Error()
	}
	return text
}

func (p *tab) open(url string) {
	p.t.Helper()
	p.do(chromedp.Navigate(url))
}

// sees waits until the condition holds on the page.
func (p *tab) sees(what, condition string) {
	p.t.Helper()
	eventually(p.t, soon, what, func() error {
		ctx, cancel := context.WithTimeout(p.ctx, soon)
		defer cancel()
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](condition))
		if err == nil && !ok {
			err = fmt.Errorf("the page is %s", p.text())
		}
		return err
	})
}

// says fails unless the text is on the page.
func (p *tab) says(text string) {
	p.t.Helper()
	if got := p.text(); !strings.Contains(got, text) {
		p.t.Errorf("the page does not say %q: %s", text, got)
	}
}

// count is how many elements the selector names.
func (p *tab) count(selector string) int {
	p.t.Helper()
	return asked[int](p, fmt.Sprintf(`document.querySelectorAll(%q).length`, selector))
}

// press presses keys as a person does, one after the other.
func (p *tab) press(keys ...string) {
	p.t.Helper()
	for _, k := range keys {
		p.do(chromedp.KeyEvent(k))
	}
}

// tabTo presses Tab until the focus is on what the selector names.
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

// looks sets how wide the page is, and whether it is dark.
func (p *tab) looks(width int64, dark bool) {
	p.t.Helper()
	scheme, height := "light", int64(900)
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

// axe is the checker of accessibility.
func axe(t testing.TB) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(programs.root, "tools", "npm", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatalf("%v: run the tests with scripts/test.sh, which installs it", err)
	}
	return string(script)
}

// axeFault is what axe found.
type axeFault struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// audit looks at the page, light and dark, wide and narrow: no serious fault of
// accessibility, nothing beyond the edge. With -update it takes pictures.
func (p *tab) audit(name string) {
	p.t.Helper()
	asked[int](p, axe(p.t)+"; 0")
	for _, dark := range []bool{false, true} {
		for _, width := range []int64{1280, 390} {
			p.looks(width, dark)
			at := fmt.Sprintf("%s, %d wide, dark: %v", name, width, dark)
			var found []axeFault
			raw := asked[string](p, `axe.run(document, {resultTypes: ["violations"]}).then((r) => JSON.stringify(r.violations))`, chromedp.EvalAwaitPromise)
			if err := json.Unmarshal([]byte(raw), &found); err != nil {
				p.t.Fatal(err)
			}
			for _, f := range found {
				if f.Impact != "serious" && f.Impact != "critical" {
					p.t.Logf("%s: %s (%s): %s: %.300s", at, f.ID, f.Impact, f.Help, f.Nodes[0].HTML)
					continue
				}
				for _, n := range f.Nodes {
					p.t.Errorf("%s: %s (%s): %s\n%s\n%s", at, f.ID, f.Impact, f.Help, n.HTML, n.FailureSummary)
				}
			}
			if over := asked[int](p, `document.documentElement.scrollWidth`); over > int(width) {
				wide := asked[string](p, fmt.Sprintf(`[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > %d).map((e) => e.tagName + "." + e.className).slice(0, 8).join(" ")`, width))
				p.t.Errorf("%s: the page is %d wide: %s", at, over, wide)
			}
			p.picture(name, width, dark)
		}
	}
	p.looks(1280, false)
}

// picture is taken with -update: of a desktop by day, of a telephone by night.
func (p *tab) picture(name string, width int64, dark bool) {
	p.t.Helper()
	if !*update || dark != (width < 600) {
		return
	}
	if dark {
		name += "-phone"
	}
	ctx, cancel := context.WithTimeout(p.ctx, soon)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		p.t.Fatal(err)
	}
	if !bytes.HasPrefix(png, []byte("\x89PNG")) {
		p.t.Fatal("the browser did not take a picture")
	}
	write(p.t, filepath.Join(programs.root, "docs", "images", "approver-"+name+".png"), string(png))
}
