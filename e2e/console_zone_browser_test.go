package e2e

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Lists show times in the time zone of the reader, so the fields of filters have it too. Addresses
// have UTC.
func TestTimesInFieldsAreLocalTimes(t *testing.T) {
	t.Parallel()
	_, pages := consoleFabric(t)
	p := openTab(startBrowser(t), t, true)
	p.do(func(ctx context.Context, target *chromedp.Target) (none chromedp.Void, err error) {
		_, err = cdp.Call(ctx, target, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"}) // UTC+5:30
		return none, err
	})
	p.open(pages + "/console/calls?since=2026-11-26T15:04")
	p.sees("a local time", `document.querySelector("[name=since]").value === "2026-11-26T20:34"`)
	p.hasText("Since (local time)")
	asked[bool](p, `(document.querySelector("[name=until]").value = "2026-11-27T02:10", document.querySelector("form.filters").requestSubmit(), true)`)
	p.sees("UTC in the address", `new URLSearchParams(location.search).get("since") === "2026-11-26T15:04" && new URLSearchParams(location.search).get("until") === "2026-11-26T20:40"`)
	p.sees("the same local times", `document.querySelector("[name=since]").value === "2026-11-26T20:34" && document.querySelector("[name=until]").value === "2026-11-27T02:10"`)
	p.open(pages + "/console/keys/new")
	p.hasText("Expires (local time)")

	plain := openTab(startBrowser(t), t, false)
	plain.open(pages + "/console/calls?since=2026-11-26T15:04")
	plain.hasText("Since (UTC)")
}
