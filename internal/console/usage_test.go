package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/console"
)

const usageReport = `{"from":"2026-11-25T03:00:00Z","to":"2026-11-26T03:00:00Z","complete":true,"total":{"calls":14},"rows":[
	{"start":"2026-11-26T01:00:00Z","key":"ci","tenant":"red","server":"files","tool":"read","calls":9,"succeeded":7,"failed":1,"denied":1,"held":2,"tool_errors":1,"took_ms":1500.25,"bytes_in":2048,"bytes_out":5},
	{"start":"2026-11-26T02:00:00Z","key":"=cmd()","tenant":"default","calls":5,"succeeded":3,"expired":1,"unknown":1,"took_ms":0,"bytes_in":0,"bytes_out":0}]}`

func openUsageConsole(t *testing.T) (*testConsole, *door) {
	t.Helper()
	d := openDoor(t, map[string]string{"GET /usage": usageReport})
	return openDesk(t, d, func(o *console.Options) {
		o.Now = func() time.Time { return time.Date(2026, 11, 26, 2, 30, 0, 0, time.UTC) }
	}), d
}

func TestUsageIsSummedAndLinksToCalls(t *testing.T) {
	k, d := openUsageConsole(t)
	p := k.get("/console/usage?by=key&by=tool&interval=hour&period=24h")
	p.has(t, ">14</span>", ">4</span>", "1.5 s", "2 KiB", "red", "read", "=cmd()", `href="/console/calls?server=files&amp;since=2026-11-26T01%3A00&amp;tool=read&amp;until=2026-11-26T02%3A00"`, "at most 9", `<rect class="bad"`, `href="/console/usage/download?by=key&amp;by=tool&amp;interval=hour&amp;period=24h"`)
	if n := strings.Count(p.body, `<rect class="bar"`); n != 2 {
		t.Errorf("the chart has %d bars", n)
	}
	asked := func(want string) {
		t.Helper()
		q, err := url.ParseQuery(d.last("GET /usage").query)
		if got := q.Encode(); err != nil || got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
	}
	asked("by=key&by=tool&from=2026-11-25T02%3A30%3A00Z&interval=hour")
	// The default is the last day by tool. The API groups by each filtered dimension.
	k.get("/console/usage").has(t, "Time of servers")
	asked("by=tool&from=2026-11-25T02%3A30%3A00Z")
	p = k.get("/console/usage?server=files&tenant=red&from=2026-11-25&to=2026-11-26&period=7d")
	asked("by=server&from=2026-11-25T00%3A00%3A00Z&tenant=red&to=2026-11-26T00%3A00%3A00Z")
	p.has(t, ">9</span>", "red")
	p.hasNot(t, "=cmd()")
	k.get("/console/usage?server=none").has(t, "No calls in this time match")
}

func TestUsageErrorsAreShown(t *testing.T) {
	k, d := openUsageConsole(t)
	p := k.get("/console/usage?from=soon")
	p.has(t, "Write a time as")
	d.set("GET /usage", "!invalid-request The report has more than 10000 rows.")
	q := k.get("/console/usage?by=tool&interval=hour&period=90d")
	q.has(t, "more than 10000 rows", `value="90d" selected`)
	if p.status != http.StatusBadRequest || q.status != http.StatusBadRequest {
		t.Errorf("%d, %d", p.status, q.status)
	}
	d.set("GET /usage", "!forbidden You may not.")
	if p = k.get("/console/usage"); p.status != http.StatusForbidden {
		t.Errorf("%d", p.status)
	}
	d.require("another")
	if p = k.get("/console/usage?by=key"); p.status != http.StatusSeeOther || p.header.Get("Location") != "/console/key?next=%2Fconsole%2Fusage%3Fby%3Dkey" {
		t.Errorf("without a key: %d %v", p.status, p.header)
	}
}

func TestUsageIsDownloadedAsCSV(t *testing.T) {
	k, _ := openUsageConsole(t)
	p := k.get("/console/usage/download?by=key&by=tool&interval=hour&period=24h")
	const want = "start,tenant,key,server,tool,calls,succeeded,tool_errors,failed,denied,expired,canceled,unknown,unfinished,held,took_ms,bytes_in,bytes_out\n" +
		"2026-11-26T01:00:00Z,red,ci,files,read,9,7,1,1,1,,,,,2,1500.25,2048,5\n" +
		"2026-11-26T02:00:00Z,default,'=cmd(),,,5,3,,,,1,,1,,,0,0,0\n"
	if p.body != want || p.header.Get("Content-Type") != "text/csv; charset=utf-8" || p.header.Get("Content-Disposition") != `attachment; filename="callyard-usage.csv"` {
		t.Errorf("%v %s", p.header, p.body)
	}
	if p = k.get("/console/usage/download?key=ci"); strings.Count(p.body, "\n") != 2 {
		t.Errorf("filtered: %s", p.body)
	}
}
