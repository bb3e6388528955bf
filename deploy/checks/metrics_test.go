package checks

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"

	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// fleet is a fleet that is scraped as configured in deploy/prometheus/prometheus.yaml.
type fleet struct {
	*recording
	door, other, worker, approver *instance
	gone, full                    *instance
}

func openFleet(t testing.TB) *fleet {
	f := &fleet{recording: record(t)}
	f.door, f.other = f.add("callyard-frontdoor", "door-1"), f.add("callyard-frontdoor", "door-2")
	f.worker, f.approver = f.add("callyard-worker", "worker-1"), f.add("callyard-approver", "approver-1")
	up := func() bool { return true }
	f.door.NATS("frontdoor", up)
	f.other.NATS("frontdoor", up)
	f.worker.NATS("worker", up)
	f.approver.NATS("approver", up)
	for _, i := range f.fleet {
		i.Configuration(func() []schema.InForce { return i.inForce })
		i.inForce = []schema.InForce{{Part: schema.PartPolicy, Version: "one", Tried: f.now}}
	}
	return f
}

// end records n calls that ended.
func (i *instance) end(n int, tool, outcome string, took time.Duration) {
	for range n {
		i.CallStarted()
		i.CallEnded("files", tool, outcome, took)
	}
}

// mix simulates the traffic of a healthy fleet between two scrapes: in 15 s one front
// door ends 24 successful calls, 2 tool errors, 2 denied calls, 1 with bad arguments and 1
// canceled call, and it holds 6 calls and stores 3 more.
func (f *fleet) mix() {
	d := f.door
	d.end(24, "read", "ok", 20*time.Millisecond)
	d.end(2, "read", "tool-error", 10*time.Millisecond)
	d.end(2, "write", "forbidden", time.Millisecond)
	d.end(1, "write", "invalid-arguments", time.Millisecond)
	d.end(1, "write", "canceled", time.Millisecond)
	for range 6 {
		d.CallStarted()
		d.CallDeferred("files", "held")
	}
	for range 3 {
		d.CallStarted()
		d.CallDeferred("files", "stored")
	}
	for range 30 {
		d.HTTPRequest("POST", 200)
	}
	d.HTTPRequest("POST", 403)
	for _, door := range []*instance{f.door, f.other} {
		door.SetWorkers(1)
		door.SetApprovals(6, 10*time.Minute)
		door.SetHeld(7, 4096)
		door.SetBatches(1, time.Minute)
		door.SetPace(0)
	}
	d.SetWaiting("files", 3, 2*time.Second)
	d.Webhook("delivered")
	f.worker.SetSessions("files", 2)
	f.worker.SetServerUp("files", true)
	f.worker.SandboxStarted("files")
	f.worker.SetSandboxes("files", 1, 2)
	f.worker.SandboxEgress("files", true)
}

type panel struct {
	Title   string
	Targets []struct{ Expr string }
}

func panels(t *testing.T) []panel {
	t.Helper()
	var board struct{ Panels []panel }
	if err := json.Unmarshal([]byte(read(t, "../grafana/callyard.json")), &board); err != nil {
		t.Fatal(err)
	}
	if len(board.Panels) < 25 {
		t.Fatalf("only %d panels were found", len(board.Panels))
	}
	return board.Panels
}

// sum adds up a vector.
func sum(v promql.Vector) (total float64) {
	for _, s := range v {
		total += s.F
	}
	return total
}

func TestDashboardPanelsShowRecordedActivity(t *testing.T) {
	f := openFleet(t)
	f.door.CallStarted() // in flight all the time
	f.door.JournalWrites("frontdoor", func() int { return 2 })
	f.door.AcceptedLosses(3)
	f.other.inForce[0].Error = "policy.yaml:3:1: …"
	f.other.inForce[0].Version = "two"
	f.add("callyard-worker", "worker-2").NATS("worker", func() bool { return false })
	f.run(20*time.Minute, func() {
		f.mix()
		f.door.end(1, "read", "server-failed", time.Second)
		f.door.end(1, "read", "outcome-unknown", time.Second)
		f.worker.ProtocolNoise("files", 3)
		f.worker.SandboxKilled("files", "memory")
		f.door.LeaseLost()
		f.door.RecordsLost(1)
		f.door.SetDisagreements(1)
		f.door.SpansDropped("full", 1)
		f.worker.SetServerUp("broken", false)
		f.worker.SessionRestarted("files")
	})
	// 32 calls end in 15 s; 2 of them failed.
	perSecond := func(n float64) float64 { return n / scrapeEvery.Seconds() }
	in5m := func(n float64) float64 { return n * 20 }
	// The expected value of each query of each panel, summed over its series.
	want := map[string][]float64{
		"Workers":                               {1},
		"Calls in flight":                       {1},
		"Waiting":                               {3},
		"Calls per second":                      {perSecond(32)},
		"Failed":                                {2. / 32},
		"Calls by server":                       {perSecond(32)},
		"Outcomes":                              {perSecond(32)},
		"Waiting for a slot":                    {3},
		"Busiest tools":                         {perSecond(32)},
		"Failed calls by tool":                  {perSecond(4)}, // includes tool errors
		"Sessions":                              {2},
		"Sessions replaced":                     {in5m(1)},
		"Invalid lines on standard output":      {perSecond(3)},
		"Containers":                            {3},
		"Containers killed":                     {in5m(1)},
		"Network requests of containers":        {perSecond(1)},
		"HTTP responses by status":              {perSecond(31)},
		"Webhook deliveries":                    {perSecond(1)},
		"Oldest waiting call":                   {2},
		"Approvals waiting":                     {6},
		"Oldest approval and batch":             {600, 60},
		"Batches":                               {1},
		"Lost leases, records and spans":        {in5m(1), in5m(1), in5m(1)},
		"Calls held and stored":                 {perSecond(9)},
		"Servers that are not ready":            {1},
		"Processes by version":                  {5},
		"Processes connected to NATS":           {4, 1},
		"Workers with a ready server":           {1},
		"NATS streams that do not store":        {2},
		"Held calls":                            {7},
		"Arguments of held calls":               {4096},
		"Files accepted as lost":                {3},
		"Refused configuration changes":         {1},
		"Configuration versions in force":       {4, 1},
		"Time since the configuration was read": {4 * (20*time.Minute - scrapeEvery).Seconds()},
	}
	// Panels whose values are not specified here. Each query must still return data.
	found := []string{"Outcome unknown, last day", "Duration of calls", "Memory", "Slowest tools"}
	for _, p := range panels(t) {
		values, exact := want[p.Title]
		if !exact && !slices.Contains(found, p.Title) {
			t.Errorf("the panel %q is new: say here what it is to show", p.Title)
		}
		for i, target := range p.Targets {
			v := f.ask(target.Expr)
			switch {
			case len(v) == 0:
				t.Errorf("%s: %s finds nothing", p.Title, target.Expr)
			case exact && math.Abs(sum(v)-values[i]) > 0.01*math.Abs(values[i]):
				t.Errorf("%s: %s is %v, want %v", p.Title, target.Expr, sum(v), values[i])
			}
		}
	}
}

// notShown maps metrics without a panel to the reason.
var notShown = map[string]string{
	"callyard_batches_pace":              "a setting of the moment; docs/how-to/batches.md says when to look at it",
	"callyard_sandboxes_started_total":   "the panel of containers shows how many there are",
	"callyard_unexpected_messages_total": "an alert tells of it",
}

func TestEveryMetricHasAPanel(t *testing.T) {
	f := openFleet(t)
	f.run(scrapeEvery, func() {
		f.mix()
		f.door.JournalWrites("frontdoor", func() int { return 0 })
		f.door.AcceptedLosses(1)
		f.door.SpansDropped("full", 1)
		f.door.Unexpected("origin")
		f.worker.ProtocolNoise("files", 1)
		f.worker.SandboxKilled("files", "memory")
		f.worker.SessionRestarted("files")
	})
	var queries strings.Builder
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			queries.WriteString(target.Expr + "\n")
		}
	}
	seen := 0
	for _, s := range f.ask(`group by (__name__) ({__name__=~"callyard_.+"})`) {
		name := s.Metric.Get("__name__")
		seen++
		why, left := notShown[name]
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if shown := strings.Contains(queries.String(), base); shown == left {
			t.Errorf("%s: shown in a panel: %t; left out because %q", name, shown, why)
		}
	}
	if seen < 30 {
		t.Errorf("only %d metrics were found", seen)
	}
}

type alert struct {
	Alert, Expr, For string
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var rules struct {
		Groups []struct{ Rules []alert }
	}
	parseYAML(t, "../prometheus/alerts.yaml", &rules)
	var all []alert
	for _, g := range rules.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 15 {
		t.Fatalf("only %d alerts were found", len(all))
	}
	return all
}

func TestNoAlertFiresForHeldDeniedAndSuccessfulCalls(t *testing.T) {
	f := openFleet(t)
	f.run(30*time.Minute, f.mix)
	for _, a := range alerts(t) {
		if v := f.ask(a.Expr); len(v) > 0 {
			t.Errorf("%s fires: %v", a.Alert, v)
		}
	}
}

// trouble maps each alert to a function that makes it fire. The function runs before each
// scrape.
var trouble = map[string]func(f *fleet){
	"CallyardFrontDoorDown":          func(f *fleet) { f.other.down = true },
	"CallyardNoFrontDoor":            func(f *fleet) { f.door.down, f.other.down = true, true },
	"CallyardApproverDown":           func(f *fleet) { f.approver.down = true },
	"CallyardNoWorkers":              func(f *fleet) { f.door.SetWorkers(0); f.other.SetWorkers(0) },
	"CallyardFrontDoorsDisagree":     func(f *fleet) { f.other.SetWorkers(0) },
	"CallyardCallsFail":              func(f *fleet) { f.door.end(3, "read", "server-failed", time.Second) },
	"CallyardEditRefused":            func(f *fleet) { f.worker.inForce[0].Error = "policy.yaml:3:1: …" },
	"CallyardProcessesDisagree":      func(f *fleet) { f.approver.inForce[0].Version = "two" },
	"CallyardOutcomeUnknown":         func(f *fleet) { f.door.end(1, "read", "outcome-unknown", time.Second) },
	"CallyardCallsWait":              func(f *fleet) { f.door.SetWaiting("files", 101, time.Second) },
	"CallyardCallWaitsLong":          func(f *fleet) { f.door.SetWaiting("files", 1, 21*time.Second) },
	"CallyardCallsAreSlow":           func(f *fleet) { f.door.end(5, "read", "ok", 50*time.Second) },
	"CallyardServerDown":             func(f *fleet) { f.worker.SetServerUp("files", false) },
	"CallyardServerRestarts":         func(f *fleet) { f.worker.SessionRestarted("files") },
	"CallyardToolsChanged":           func(f *fleet) { f.other.SetChangedTools("files", 2) },
	"CallyardSandboxesLost":          func(f *fleet) { f.worker.SandboxKilled("files", "lost") },
	"CallyardSandboxesRefusedPlaces": func(f *fleet) { f.worker.SandboxEgress("files", false) },
	"CallyardServerErrors":           func(f *fleet) { f.door.HTTPRequest("POST", 500); f.door.HTTPRequest("POST", 502) },
	"CallyardApprovalsWait":          func(f *fleet) { f.door.SetApprovals(1, 61*time.Minute) },
	"CallyardBatchIsOld":             func(f *fleet) { f.door.SetBatches(1, 13*time.Hour) },
	"CallyardLeasesLost":             func(f *fleet) { f.door.LeaseLost() },
	"CallyardRecordsLost":            func(f *fleet) { f.door.RecordsLost(1) },
	"CallyardForgedMessages":         func(f *fleet) { f.worker.Unexpected("origin") },
	"CallyardTracesDropped":          func(f *fleet) { f.door.SpansDropped("full", 1) },
	"CallyardJournalWritesFail": func(f *fleet) {
		if f.full == nil {
			f.full = f.add("callyard-frontdoor", "frontdoor-3")
			f.full.JournalWrites("frontdoor", func() int { return 1 })
		}
	},
	"CallyardRedisDown": func(f *fleet) {
		if f.full == nil {
			f.full = f.add("callyard-frontdoor", "frontdoor-3")
			telemetry.Redis(f.full.Metrics, func() bool { return false })
		}
	},
	"CallyardNATSDisconnected": func(f *fleet) {
		if f.gone == nil {
			f.gone = f.add("callyard-worker", "worker-2")
			f.gone.NATS("worker", func() bool { return false })
		}
	},
}

func TestEachAlertFiresForItsFault(t *testing.T) {
	for _, a := range alerts(t) {
		t.Run(a.Alert, func(t *testing.T) {
			cause := trouble[a.Alert]
			if cause == nil {
				t.Fatal("the alert is new: say in trouble what makes it fire")
			}
			f := openFleet(t)
			f.run(20*time.Minute, func() { f.mix(); cause(f) })
			if v := f.ask(a.Expr); len(v) == 0 {
				t.Errorf("%s finds nothing", a.Expr)
			}
			if _, err := time.ParseDuration(a.For); a.For != "" && err != nil {
				t.Error(err)
			}
		})
	}
	for name := range maps.Keys(trouble) {
		if !slices.ContainsFunc(alerts(t), func(a alert) bool { return a.Alert == name }) {
			t.Errorf("no alert is named %s", name)
		}
	}
}

// If one occurrence of a fault must alert, it must do so on the first occurrence in a process
// that has run for a while. A series that only begins with the fault would show no increase.
func TestAnAlertFiresForTheFirstFault(t *testing.T) {
	once := []string{"CallyardOutcomeUnknown", "CallyardSandboxesLost", "CallyardRecordsLost", "CallyardTracesDropped", "CallyardForgedMessages"}
	for _, a := range alerts(t) {
		if !slices.Contains(once, a.Alert) {
			if strings.Contains(a.Expr, "increase(") && strings.HasSuffix(a.Expr, "> 0") {
				t.Errorf("%s fires for one fault and is not among those that are tried", a.Alert)
			}
			continue
		}
		t.Run(a.Alert, func(t *testing.T) {
			f := openFleet(t)
			f.run(5*time.Minute, f.mix)
			trouble[a.Alert](f)
			f.run(time.Minute, f.mix)
			if v := f.ask(a.Expr); len(v) == 0 {
				t.Errorf("%s finds nothing", a.Expr)
			}
		})
	}
}
