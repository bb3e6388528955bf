// Package browser drives a Chromium for tests of our pages.
//
// It owns the start and end of a browser and the actions of a test on a page. It promises
// that the browser and its data are removed when the test ends. It knows none of our pages.
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

// Patience limits every wait. It is not an expectation, because the machine is shared with
// other programs.
const Patience = time.Minute

// Void is an action of the browser that returns nothing.
type Void = chromedp.Action[chromedp.Void]

// Start runs a browser until the test ends. Chromium must be on the PATH.
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
	// It loads only pages of this test, so it can run without its sandbox, which
	// containers do not support.
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

// Tab is a page of a browser, with separate cookies. Its methods fail the test on errors.
type Tab struct {
	T   testing.TB
	Ctx context.Context
}

// Open opens an empty page, with or without JavaScript.
func Open(browser context.Context, t testing.TB, scripts bool) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	// A tab that is created with a deadline would end with it.
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

// gone is the browser's error for an element that has disappeared since it was found, because
// the page was reloaded or has changed. The action was not performed.
const gone = "Could not find node with given id"

// Do runs actions on the page.
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

// Go navigates to a URL.
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

// Text returns the text of the page, for messages.
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

// Says fails the test unless the text is on the page.
func (p *Tab) Says(text string) {
	p.T.Helper()
	if got := p.Text(); !strings.Contains(got, text) {
		p.T.Errorf("the page does not say %q: %s", text, got)
	}
}

// Count returns the number of elements that match the selector.
func (p *Tab) Count(selector string) int {
	p.T.Helper()
	return Ask[int](p, fmt.Sprintf(`document.querySelectorAll(%q).length`, selector))
}
