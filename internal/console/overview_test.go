package console_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/console"
	"github.com/callyard/callyard/pkg/schema"
)

func kindNamed(name string) schema.Kind { return schema.Kind(name) }

const (
	okServer  = `{"id":"files","connected":true,"pid":7,"initialization_state":"initialized","transport":"stdio","tools":3,"worker_count":1,"workers":[{"id":"w1","initialization_state":"initialized","pid":7,"slots":8,"sessions":2,"restarts":1,"draining":false}],"slots":8,"in_flight":2,"waiting":1}`
	badServer = `{"id":"crm","connected":false,"pid":0,"initialization_state":"error","transport":"stdio","error":"The process ended with status 3.","stderr_tail":"no such module","worker_count":1,"workers":[{"id":"w1","initialization_state":"error","pid":0,"slots":8,"sessions":0,"restarts":0,"draining":false,"error":"exit status 3"}],"slots":8,"in_flight":0,"waiting":0,"changed_tools":["pay"],"pin":"quarantine"}`
)

// doorText returns a front door with a number of ended calls, of which fast took at most 0.1 s and
// the others at most 1 s.
func doorText(id string, ended, fast, failed, inFlight int) string {
	return fmt.Sprintf(`{"id":%q,"version":"1.3","region":"eu","draining":false,"load":{"ended":%d,"failed":%d,"tool_errors":0,"in_flight":%d,"waiting":1,"times":[{"at_most":0.1,"calls":%d},{"at_most":1,"calls":%d},{"calls":0}]}}`, id, ended, failed, inFlight, fast, ended-fast)
}

// frontDoorsJSON returns the response of GET /front-doors.
func frontDoorsJSON(doors ...string) string {
	return `{"fabric":{"workers":2,"approvals":5,"oldest_approval":"1970-01-01T00:15:00Z","batches":1234,"disagreements":3},"front_doors":[` + strings.Join(doors, ",") + `]}`
}

// figureOf returns the value that the overview shows under a label.
func figureOf(t *testing.T, p page, label string) string {
	t.Helper()
	m := regexp.MustCompile(`(?s)` + regexp.QuoteMeta(label) + `</span>\s*<span class="figure-value[^"]*">(.*?)</span>\s*<span class="figure-note`).FindStringSubmatch(p.body)
	if m == nil {
		t.Fatalf("there is no figure %q in:\n%s", label, p.body)
	}
	return regexp.MustCompile(`<[^>]*>`).ReplaceAllString(m[1], "")
}

func TestRatesRestartWithTheFrontDoor(t *testing.T) {
	d := openDoor(t, map[string]string{"GET /servers": `{"servers":[]}`})
	var at atomic.Int64
	k := openDesk(t, d, func(o *console.Options) { o.Now = func() time.Time { return time.Unix(at.Load(), 0) } })
	for i, c := range []struct {
		at       int64
		id, want string
	}{{1000, "a", "unknown"}, {1010, "b", "unknown"}, {1020, "b", "10"}, {1200, "b", "unknown"}} {
		at.Store(c.at)
		d.set("GET /front-doors", frontDoorsJSON(doorText(c.id, 100+100*i, 100, 0, 0)))
		if got := figureOf(t, k.get("/console"), "Calls per second"); got != c.want {
			t.Errorf("at %d: %s", c.at, got)
		}
	}
}

func TestOverviewShowsTheFrontDoorFigures(t *testing.T) {
	d := openDoor(t, map[string]string{
		"GET /servers":     `{"servers":[` + okServer + `,` + badServer + `]}`,
		"GET /front-doors": frontDoorsJSON(doorText("a", 104, 100, 4, 3)),
	})
	var at atomic.Int64
	k := openDesk(t, d, func(o *console.Options) { o.Now = func() time.Time { return time.Unix(at.Load(), 0) } })
	at.Store(1000)
	p := k.get("/console")
	for label, want := range map[string]string{"Calls per second": "unknown", "Latency p99": "unknown", "In flight": "3", "Workers": "2", "Held for approval": "5", "Open batches": "1,234", "Servers in trouble": "1"} {
		if got := figureOf(t, p, label); got != want {
			t.Errorf("%s is %q, want %q", label, got, want)
		}
	}
	p.has(t, "The process ended with status 3.", `href="/console/server?id=crm"`, "1 not accepted", "the oldest for 1 min 40 s", "differences in configuration: 3", "waiting for a slot: 1")

	// Ten seconds and 200 calls later.
	d.set("GET /front-doors", frontDoorsJSON(doorText("a", 304, 300, 4, 3)))
	at.Store(1010)
	p = k.get("/console")
	for label, want := range map[string]string{"Calls per second": "20", "Errors per second": "0", "Latency p50": "50 ms", "Latency p99": "99 ms"} {
		if got := figureOf(t, p, label); got != want {
			t.Errorf("%s is %q, want %q", label, got, want)
		}
	}
	p.has(t, "of the last 10 s")
}

func TestFiguresAreTheSumOfAllFrontDoors(t *testing.T) {
	d := openDoor(t, map[string]string{"GET /servers": `{"servers":[]}`})
	var at atomic.Int64
	k := openDesk(t, d, func(o *console.Options) { o.Now = func() time.Time { return time.Unix(at.Load(), 0) } })
	look := func(when int64, doors ...string) page {
		t.Helper()
		at.Store(when)
		d.set("GET /front-doors", frontDoorsJSON(doors...))
		return k.get("/console")
	}
	for _, c := range []struct {
		at                             int64
		doors                          []string
		calls, errors, p50, p99, flies string
		says                           string
	}{
		{1000, []string{doorText("a", 100, 100, 0, 2), doorText("b", 5000, 5000, 10, 1)}, "unknown", "unknown", "unknown", "unknown", "3", "the sum of its 2 front doors"},
		{1010, []string{doorText("a", 200, 200, 0, 2), doorText("b", 5100, 5000, 20, 1)}, "20", "1", "100 ms", "982 ms", "3", "of the last 10 s"},
		// A stale sample of the first front door, through another one, subtracts nothing.
		{1020, []string{doorText("b", 5200, 5100, 20, 0), doorText("a", 190, 190, 0, 1)}, "15", "0.5", "75 ms", "973 ms", "1", "the sum of its 2 front doors"},
		// A new or restarted front door adds nothing at its first sample, and one that has ended
		// subtracts nothing.
		{1030, []string{doorText("b", 5200, 5100, 20, 0), doorText("c", 9000, 9000, 0, 4)}, "10", "0.33", "75 ms", "973 ms", "4", "the sum of its 2 front doors"},
		{1040, []string{doorText("b", 5200, 5100, 20, 0), doorText("c", 9100, 9100, 0, 4), `{"id":"old","draining":false}`}, "10", "0.25", "66.7 ms", "964 ms", "4", "1 more is of an older version and does not report its calls"},
		{1200, []string{doorText("b", 5300, 5200, 20, 0)}, "unknown", "unknown", "unknown", "unknown", "0", "which has one front door"},
	} {
		p := look(c.at, c.doors...)
		for label, want := range map[string]string{"Calls per second": c.calls, "Errors per second": c.errors, "Latency p50": c.p50, "Latency p99": c.p99, "In flight": c.flies, "Held for approval": "5"} {
			if got := figureOf(t, p, label); got != want {
				t.Errorf("at %d %s is %q, want %q", c.at, label, got, want)
			}
		}
		p.has(t, c.says)
	}
}

func TestPageLoadsShareOneFrontDoorRequest(t *testing.T) {
	d := openDoor(t, map[string]string{"GET /servers": `{"servers":[]}`, "GET /front-doors": frontDoorsJSON(doorText("a", 1, 1, 0, 0))})
	k := openDesk(t, d, func(o *console.Options) { o.Now = func() time.Time { return time.Unix(1000, 0) } })
	for range 50 {
		k.get("/console").has(t, "There are no servers")
	}
	if len(d.asked) != 2 {
		t.Errorf("the front door was asked %d times", len(d.asked))
	}
}

func TestUnreachableFrontDoorIsReported(t *testing.T) {
	k := openDesk(t, &door{url: "http://127.0.0.1:1"}, nil)
	p := k.get("/console")
	if p.status != http.StatusServiceUnavailable {
		t.Errorf("the status is %d", p.status)
	}
	p.has(t, "The front door at http://127.0.0.1:1 does not answer")
}

func TestUserKeyIsRequestedCheckedAndSent(t *testing.T) {
	d := openDoor(t, map[string]string{"GET /servers": `{"servers":[]}`, "GET /front-doors": frontDoorsJSON(doorText("a", 1, 1, 0, 0)), "GET /version": `{"version":"1","go":"x","started":"2026-01-01T00:00:00Z"}`})
	d.require("cy_good")
	k := openDesk(t, d, nil)
	if p := k.get("/console"); p.status != http.StatusSeeOther || p.header.Get("Location") != "/console/key?next=%2Fconsole" {
		t.Fatalf("without a key: %d %v", p.status, p.header)
	}
	k.get("/console/key?next=%2F%2Fevil.example%2F").has(t, `name="next" value="/console"`)
	p := k.post("/console/key", "key", "cy_bad", "next", "/console/tools?q=x")
	if p.status != http.StatusUnauthorized || k.key != "" {
		t.Errorf("a wrong key: %d, kept %q", p.status, k.key)
	}
	p.has(t, "The API key is unknown.", `value="/console/tools?q=x"`)
	p.hasNot(t, "cy_bad")
	if p = k.post("/console/key", "key", "cy_good", "next", "/console"); p.status != http.StatusSeeOther || p.header.Get("Location") != "/console" || k.key != "cy_good" {
		t.Errorf("the right key: %d %v", p.status, p.header)
	}
	if p = k.get("/console"); p.status != http.StatusOK || d.last("GET /servers").key != "cy_good" {
		t.Errorf("with the key: %d", p.status)
	}
	if k.post("/console/key", "do", "forget"); k.key != "" {
		t.Error("the key is still kept")
	}
}

func FuzzRedirectsStayInTheConsole(f *testing.F) {
	for _, seed := range []string{"/console", "/console/tools?q=a b", "//evil/console", "/console/../x", "/console%2f..", "javascript:/console", "\\/console", "/console/%2e%2e/x", "/consoles"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		to := console.Back(text)
		if to != "/console" && !strings.HasPrefix(to, "/console/") && !strings.HasPrefix(to, "/console?") || strings.Contains(to, "..") || strings.ContainsAny(to, "\\\r\n\t") {
			t.Fatalf("%q leads to %q", text, to)
		}
	})
}
