package e2e

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// watchedFleet is a fleet of separate processes with a console that asks the first front door.
type watchedFleet struct {
	fleet
	probes   []string // the addresses of the workers' metrics
	approver *door
}

const fleetPolicy = `
rules:
  - {name: no, match: {tool: big}, deny: "It is too big."}
  - {name: ask, match: {tool: add}, level: 2, approval: {by: caller, expires: 1h}}
  - {name: others, match: {tool: "*"}, level: 1}
`

func openWatchedFleet(t *testing.T) *watchedFleet {
	t.Helper()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, fleetPolicy)
	signs, trusts := callerKeys(t)
	servers := serversFile(t, map[string]entry{"demo": {Command: filepath.Join(bin(t), "callyard"), Args: []string{"demo-server"}, Sessions: 4, InFlight: 16}, "held": scripted(mcptest.Echo)})
	f := &watchedFleet{fleet: fleet{nats: startNATS(t, t.TempDir())}}
	for range 2 {
		f.probes = append(f.probes, porttest.Address(t))
		env := append([]string{"CALLYARD_WORKER_LISTEN=" + f.probes[len(f.probes)-1]}, trusts...)
		f.workers = append(f.workers, startWorker(t, setup{nats: f.nats.url, servers: servers, env: env, flags: []string{"--policy", policy}}))
		f.doors = append(f.doors, startFrontDoor(t, setup{nats: f.nats.url, env: append([]string{quickStop}, signs...), flags: []string{"--policy", policy}}))
	}
	f.approver = startApprover(t, setup{nats: f.nats.url, config: "approver:\n  drain_delay: 1ms\n  console:\n    front_door: " + f.doors[0].url + "\n"})
	for _, d := range f.doors {
		d.waitServers(t, 2, "demo", "held")
	}
	return f
}

// look returns a page of the console.
func (f *watchedFleet) look(t *testing.T, path string) string {
	t.Helper()
	a := f.approver.ask(t, "GET", path, "", "Accept: text/html")
	if a.status != http.StatusOK {
		t.Fatalf("%s: %d %s", path, a.status, a.body)
	}
	return string(a.body)
}

// metrics adds up the metrics of all processes. Gauges of waiting calls are the same at all
// front doors, so it uses one of them.
func (f *watchedFleet) metrics() (figures, error) {
	sum := figures{}
	for i, d := range f.doors {
		of, err := d.figuresOfMetrics()
		if err != nil {
			return nil, err
		}
		for name, n := range of {
			if shared := name == "approvals_waiting" || name == "batches_open"; shared && i > 0 && sum[name] != n {
				return nil, fmt.Errorf("front door %d has %v %s, and the one before %v", i, n, name, sum[name])
			} else if !shared || i == 0 {
				sum[name] += n
			}
		}
	}
	for _, at := range f.probes {
		of, err := (&door{process: f.approver.process, url: "http://" + at, http: f.approver.http}).figuresOfMetrics()
		if err != nil || of["ended"] != 0 || of["calls_in_flight"] != 0 {
			return nil, fmt.Errorf("a worker counts calls, which front doors count: %v %w", of, err)
		}
	}
	return sum, nil
}

// announced adds up the load of GET /front-doors.
func (d *door) announced(t *testing.T) (doors int, sum figures) {
	t.Helper()
	var list struct {
		FrontDoors []struct {
			Load *struct {
				Ended, Failed float64
				ToolErrors    float64                   `json:"tool_errors"`
				InFlight      float64                   `json:"in_flight"`
				Times         []struct{ Calls float64 } `json:"times"`
			}
		} `json:"front_doors"`
	}
	d.read(t, "/front-doors", &list)
	sum = figures{}
	for _, one := range list.FrontDoors {
		if one.Load == nil {
			t.Fatalf("a front door does not announce its load: %+v", list)
		}
		sum["ended"] += one.Load.Ended
		sum["failed"] += one.Load.Failed
		sum["tool errors"] += one.Load.ToolErrors
		sum["in flight"] += one.Load.InFlight
		for _, b := range one.Load.Times {
			sum["timed"] += b.Calls
		}
	}
	return len(list.FrontDoors), sum
}

// heldAndNeverRan is the number of calls of everyKind that an approver denied, or that were
// canceled while held.
const heldAndNeverRan = 4 + 2 + 2

// everyKind makes calls of every kind at both front doors, and returns the expected counts of the log.
func (f *watchedFleet) everyKind(t *testing.T) usageCounts {
	t.Helper()
	answer := func(i, want int, tool, arguments string, headers ...string) answer {
		t.Helper()
		a, err := f.doors[i%2].tryCall("demo", tool, arguments, headers...)
		if err != nil || a.status != want {
			t.Fatalf("%s at front door %d: %d %s, %v; want %d", tool, i%2, a.status, a.body, err, want)
		}
		return a
	}
	for i := range 20 {
		answer(i, 200, "echo", `{"message":"hello"}`)
		answer(i, 202, "echo", `{"message":"later"}`, "Prefer: respond-async")
	}
	for i := range 6 {
		answer(i, 200, "fail", `{}`)
		answer(i, 403, "big", `{"bytes":10}`)
		answer(i, 422, "echo", `{"wrong":1}`)
	}
	for i := range 12 { // 4 wait, 4 are confirmed and 2 denied at the other front door, 2 are canceled there
		a := answer(i, 202, "add", `{"a":1,"b":2}`)
		token := regexp.MustCompile(`"confirmation_id":"([^"]+)"`).FindSubmatch(a.body)
		other, path, body, want := f.doors[(i+1)%2], "/calls/"+a.header.Get("Callyard-Call-Id")+"/cancel", "", 200
		switch {
		case token == nil:
			t.Fatalf("a held call has no token: %s", a.body)
		case i < 4:
			continue
		case i < 10:
			path, body = "/confirmations/"+string(token[1]), fmt.Sprintf(`{"confirm":%t}`, i < 8)
		}
		if a := other.ask(t, "POST", path, body); a.status != want {
			t.Fatalf("%s %s: %d %s", path, body, a.status, a.body)
		}
	}
	for i := range 2 { // a running call is canceled at the other front door: it may have had its effect
		id := answer(i, 202, "sleep", `{"seconds":60}`, "Prefer: respond-async").header.Get("Callyard-Call-Id")
		f.doors[i].eventually(t, startWithin, "a call that runs", func() error {
			if running := f.doors[0].get(t, "/calls?state=running"); !strings.Contains(string(running), id) {
				return fmt.Errorf("these run: %s", running)
			}
			return nil
		})
		if a := f.doors[(i+1)%2].ask(t, "POST", "/calls/"+id+"/cancel", ""); a.status != 200 && a.status != 202 {
			t.Fatalf("canceling %s: %d %s", id, a.status, a.body)
		}
	}
	for i := range 2 { // durable calls that are refused, or held and canceled
		answer(i, 403, "big", `{"bytes":10}`, "Prefer: respond-async")
		id := answer(i, 202, "add", `{"a":1,"b":2}`, "Prefer: respond-async").header.Get("Callyard-Call-Id")
		if a := f.doors[(i+1)%2].ask(t, "POST", "/calls/"+id+"/cancel", ""); a.status != 200 {
			t.Fatalf("canceling %s: %d %s", id, a.status, a.body)
		}
	}
	for i, d := range f.doors {
		f.batch(t, d, f.doors[1-i])
	}
	return usageCounts{
		"calls": 20 + 20 + 18 + 12 + 2 + 4 + 60, "succeeded": 20 + 20 + 6 + 4 + 56, "tool_errors": 6 + 4, "failed": 6, "denied": 6 + 2 + 2 + 2 + 2, "canceled": 2 + 2, "unknown": 2, "unfinished": 4, "held": 12 + 2 + 4,
	}
}

// batch sends 30 calls: 25 succeed, 2 end with tool errors, one is refused, and two are held, of
// which one is approved and one denied at the other front door.
func (f *watchedFleet) batch(t *testing.T, d, other *door) {
	t.Helper()
	lines := make([]string, 30)
	for i := range lines {
		tool, arguments := "echo", `{"message":"b"}`
		switch {
		case i >= 28:
			tool, arguments = "add", `{"a":1,"b":2}`
		case i == 27:
			tool, arguments = "big", `{"bytes":10}`
		case i >= 25:
			tool, arguments = "fail", `{}`
		}
		lines[i] = fmt.Sprintf(`{"server":"demo","tool":%q,"arguments":%s}`, tool, arguments)
	}
	a := d.ask(t, "POST", "/batches", `{"calls":[`+strings.Join(lines, ",")+`]}`)
	id := regexp.MustCompile(`batch_\w+`).FindString(string(a.body))
	if a.status >= 300 || id == "" {
		t.Fatalf("the batch: %d %s", a.status, a.body)
	}
	var held []string
	other.eventually(t, startWithin, "two held calls", func() error {
		body := string(other.get(t, "/batches/"+id+"/held"))
		held = held[:0]
		for _, found := range regexp.MustCompile(`"call_id":"([^"]+)"`).FindAllStringSubmatch(body, -1) {
			held = append(held, found[1])
		}
		if len(held) != 2 {
			return fmt.Errorf("held are %s", body)
		}
		return nil
	})
	for i, call := range held {
		if a := other.ask(t, "POST", "/confirmations", fmt.Sprintf(`{"calls":[%q],"confirm":%t}`, call, i == 0)); a.status != 200 {
			t.Fatalf("confirming %s: %d %s", call, a.status, a.body)
		}
	}
}

// agree waits until the log, usage, the metrics of all processes and the loads that front doors
// announce agree, at both front doors.
func (f *watchedFleet) agree(t *testing.T, want usageCounts) {
	t.Helper()
	// Calls that were held and never ran are only in the log and in usage.
	ended := want["calls"] - want["unfinished"] - heldAndNeverRan
	wantMetrics := figures{"ended": ended, "approvals_waiting": want["unfinished"], "calls_in_flight": 0, "batches_open": 0}
	wantLoad := figures{"ended": ended, "timed": ended, "failed": want["failed"] + want["denied"] + want["canceled"] + want["unknown"] - heldAndNeverRan, "tool errors": want["tool_errors"], "in flight": 0}
	for _, state := range []string{"succeeded", "failed", "denied", "canceled", "unknown"} {
		wantMetrics["usage_calls_total "+state] = want[state]
	}
	f.doors[0].eventually(t, startWithin, "figures that agree", func() error {
		for i, d := range f.doors {
			log, err := d.recorded("none")
			if err != nil {
				return err
			}
			rows, err := d.usageByKey("none")
			if err != nil || len(rows) != 1 {
				return fmt.Errorf("usage has %d rows: %w", len(rows), err)
			}
			for _, of := range rows {
				if !sameUsage(of, log) {
					return fmt.Errorf("usage of front door %d has %v and the log %v", i, of, log)
				}
			}
			for _, name := range []string{"bytes_in", "bytes_out", "took_ms"} {
				delete(log, name)
			}
			if diff := cmp.Diff(want, log); diff != "" {
				return fmt.Errorf("the log of front door %d (-want +got): %s", i, diff)
			}
			doors, load := d.announced(t)
			if diff := cmp.Diff(wantLoad, load); diff != "" || doors != 2 {
				return fmt.Errorf("%d front doors as front door %d knows them (-want +got): %s", doors, i, diff)
			}
		}
		metrics, err := f.metrics()
		if err != nil {
			return err
		}
		for name := range metrics {
			if strings.HasPrefix(name, "calls_total ") {
				delete(metrics, name) // these are the single kinds of errors, and ended is their sum
			}
		}
		if diff := cmp.Diff(wantMetrics, metrics); diff != "" {
			return fmt.Errorf("the metrics of all processes (-want +got): %s", diff)
		}
		return nil
	})
}

// pagesAgree compares the pages of the console with the log.
func (f *watchedFleet) pagesAgree(t *testing.T, want usageCounts) {
	t.Helper()
	f.doors[0].eventually(t, soon, "pages that agree", func() error {
		overview := f.look(t, "/console")
		for label, n := range map[string]string{"In flight": "0", "Held for approval": "4", "Open batches": "0", "Workers": "2", "Servers in trouble": "0"} {
			if got := figureIn(overview, label); got != n {
				return fmt.Errorf("the overview says %q of %q, not %q", got, label, n)
			}
		}
		if !strings.Contains(overview, "the sum of its 2 front doors") {
			return fmt.Errorf("the overview does not say of which front doors: %s", overview)
		}
		usage := regexp.MustCompile(`<span class="figure-value">([^<]*)</span>Calls`).FindStringSubmatch(f.look(t, "/console/usage?period=24h"))
		if usage == nil || usage[1] != fmt.Sprint(want["calls"]) {
			return fmt.Errorf("the page of usage has %q calls", usage)
		}
		return nil
	})
	for state, n := range map[string]float64{"": want["calls"], "held": want["unfinished"], "denied": want["denied"], "canceled": want["canceled"], "unknown": want["unknown"], "failed": want["failed"]} {
		if got := f.listed(t, "/console/calls?state="+state); got != int(n) {
			t.Errorf("the pages list %d calls of the state %q, not %v", got, state, n)
		}
	}
}

// listed counts the calls on a page and its next pages.
func (f *watchedFleet) listed(t *testing.T, path string) (n int) {
	t.Helper()
	for path != "" {
		page := f.look(t, path)
		n += strings.Count(page, `href="/console/call?id=`)
		next := regexp.MustCompile(`<a href="([^"]+)">Older calls`).FindStringSubmatch(page)
		if path = ""; next != nil {
			path = html.UnescapeString(next[1])
		}
	}
	return n
}

// figureIn reads a figure of the overview, or "" if it is missing.
func figureIn(body, label string) string {
	found := regexp.MustCompile(`figure-label">` + label + `</span>\s*<span class="figure-value[^"]*">(?:<span[^>]*>)?([^<]*)<`).FindStringSubmatch(body)
	if found == nil {
		return ""
	}
	return found[1]
}

// TestFiguresOfSeveralProcessesAgree makes calls of every kind through two front doors, and
// compares the figures of the log, usage, the metrics of all processes and the console. The
// console asks one front door and must show the figures of both.
func TestFiguresOfSeveralProcessesAgree(t *testing.T) {
	t.Parallel()
	f := openWatchedFleet(t)
	want := f.everyKind(t)
	f.agree(t, want)
	f.pagesAgree(t, want)

	// Calls in flight at both front doors, more at the one that the console does not ask. They end
	// when they were seen.
	effects, gate := filepath.Join(t.TempDir(), "effects"), filepath.Join(t.TempDir(), "gate")
	slow := make(chan error, 5)
	for i := range cap(slow) {
		go func() {
			a, err := f.doors[min(i, 1)].tryCall("held", "effect", fmt.Sprintf(`{"path":%q,"id":"%d","after":%q}`, effects, i, gate))
			if err == nil && a.status != http.StatusOK {
				err = fmt.Errorf("%d %s", a.status, a.body)
			}
			slow <- err
		}()
	}
	f.doors[0].eventually(t, soon, "the calls in flight", func() error {
		if got, listed := figureIn(f.look(t, "/console"), "In flight"), f.listed(t, "/console/calls?state=running"); got != "5" || listed != 5 {
			return fmt.Errorf("the overview says %s, and %d are listed as running", got, listed)
		}
		return nil
	})
	write(t, gate, "")
	for range cap(slow) {
		if err := <-slow; err != nil {
			t.Error(err)
		}
	}
	want["calls"] += 5
	want["succeeded"] += 5
	f.agree(t, want)
	f.ratesAreOfBoth(t)
}

// ratesAreOfBoth makes fast calls at the front door that the console asks and slow ones at the other,
// and checks the rates since then.
func (f *watchedFleet) ratesAreOfBoth(t *testing.T) {
	t.Helper()
	// The console forgets data older than a minute, so start with an empty one.
	f.approver.stop(t)
	f.approver = startApprover(t, setup{nats: f.nats.url, config: "approver:\n  drain_delay: 1ms\n  console:\n    front_door: " + f.doors[0].url + "\n"})
	f.look(t, "/console") // takes the first figures
	began := time.Now()
	load := runCalls(8, 60, func(n int) error {
		i, tool, arguments := 0, "echo", `{"message":"quick"}`
		if n%3 > 0 {
			i, tool, arguments = 1, "sleep", `{"seconds":0.3}`
		}
		a, err := f.doors[i].tryCall("demo", tool, arguments)
		if err == nil && a.status != http.StatusOK {
			err = fmt.Errorf("%d %s", a.status, a.body)
		}
		return err
	})
	load.none(t, "the calls")
	f.doors[0].eventually(t, soon, "rates of both front doors", func() error {
		least := time.Since(began).Seconds()
		overview := f.look(t, "/console")
		over := regexp.MustCompile(`of the last (\d+) s`).FindStringSubmatch(overview)
		if over == nil {
			return fmt.Errorf("nothing is known yet: %s", overview)
		}
		rate, err := strconv.ParseFloat(figureIn(overview, "Calls per second"), 64)
		seconds, _ := strconv.ParseFloat(over[1], 64)
		if err != nil || seconds < least-2 || rate*seconds < 50 || rate*seconds > 70 {
			return fmt.Errorf("%v calls a second over %v s are not 60: %w", rate, seconds, err)
		}
		for _, label := range []string{"Latency p50", "Latency p99"} {
			if got, err := time.ParseDuration(strings.ReplaceAll(figureIn(overview, label), " ", "")); err != nil || got < 250*time.Millisecond {
				return fmt.Errorf("%s is %s, and two of three calls took 300 ms: %w", label, got, err)
			}
		}
		return nil
	})
	var list json.RawMessage
	f.doors[1].read(t, "/front-doors", &list)
	if page := f.look(t, "/console/fleet"); strings.Count(page, "frontdoor_") < 2 || strings.Contains(page, "unknown") {
		t.Errorf("the page of the fleet does not show both front doors of %s: %s", list, page)
	}
}
