// Package browser drives a Chromium for tests of our pages.
//
// It owns how a browser is started and ended and what a test does at a page; it promises
// that the browser and its data are gone when the test ends. It knows none of our pages.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Patience bounds every wait. It is no expectation: the machine is shared with whatever
// else runs.
const Patience = time.Minute

// Void is an action of the browser that returns nothing.
type Void = chromedp.Action[chromedp.Void]

// Start runs a browser until the test ends. There must be a Chromium on the PATH.
func Start(t testing.TB) context.Context {
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
		ending, stop := context.WithTimeout(ctx, Patience)
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

// Tab is a page of a browser, with cookies of its own. Its methods fail the test.
type Tab struct {
	T   testing.TB
	Ctx context.Context
}

// Open opens an empty page, with or without JavaScript.
func Open(browser context.Context, t testing.TB, scripts bool) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	// Made with a deadline, a tab would end with it.
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("opening a tab: %v", err)
	}
	p := &Tab{t, ctx}
	if !scripts {
		p.Do(func(ctx context.Context, target *chromedp.Target) (none chromedp.Void, err error) {
			_, err = cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
			return none, err
		})
	}
	return p
}

// gone is what the browser says of an element that was there when it was looked for: the
// page was loaded, or has changed, since. Nothing was done then.
const gone = "Could not find node with given id"

// Do does something at the page.
func (p *Tab) Do(actions ...Void) {
	p.T.Helper()
	ctx, cancel := context.WithTimeout(p.Ctx, Patience)
	defer cancel()
	for _, action := range actions {
		err := chromedp.Do(ctx, action)
		for err != nil && strings.Contains(err.Error(), gone) && ctx.Err() == nil {
			err = chromedp.Do(ctx, action)
		}
		if err != nil {
			p.T.Fatalf("%v; the page is %s", err, p.Text())
		}
	}
}

// Go goes to an address.
func (p *Tab) Go(url string) {
	p.T.Helper()
	p.Do(chromedp.Navigate(url))
}

// Ask evaluates an expression on the page.
func Ask[T any](p *Tab, expression string, options ...chromedp.EvaluateOption) T {
	p.T.Helper()
	ctx, cancel := context.WithTimeout(p.Ctx, Patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, options...))
	if err != nil {
		p.T.Fatalf("asking the page %.200s: %v", expression, err)
	}
	return v
}

// Text is what is on the page, for messages.
func (p *Tab) Text() string {
	ctx, cancel := context.WithTimeout(p.Ctx, Patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + (document.body ? document.body.innerText : "")`))
	if err != nil {
		return err.Error()
	}
	return text
}

// Sees waits until the condition holds on the page.
func (p *Tab) Sees(what, condition string) {
	p.T.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ctx, cancel := context.WithTimeout(p.Ctx, Patience)
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](condition))
		cancel()
		if err == nil && ok {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			p.T.Fatalf("%s: not within %s: %v; the page is %s", what, Patience, errors.Join(err), p.Text())
		}
	}
}

// Says fails unless the text is on the page.
func (p *Tab) Says(text string) {
	p.T.Helper()
	if got := p.Text(); !strings.Contains(got, text) {
		p.T.Errorf("the page does not say %q: %s", text, got)
	}
}

// Count is how many elements the selector names.
func (p *Tab) Count(selector string) int {
	p.T.Helper()
	return Ask[int](p, fmt.Sprintf(`document.querySelectorAll(%q).length`, selector))
}
