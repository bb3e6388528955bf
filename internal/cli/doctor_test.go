package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// fakeSystem is a fake system for the doctor: its response for each path, and its clock skew. Paths
// that are not listed are not found.
type fakeSystem struct {
	answers map[string]answer
	clock   time.Duration
}

// healthyFrontDoor returns a healthy front door.
func healthyFrontDoor() *fakeSystem {
	return &fakeSystem{answers: map[string]answer{
		"/version":       jsonAnswer(`{"version":"1.2.3","go":"go1.26","started":"2026-01-01T00:00:00Z"}`),
		"/readyz":        jsonAnswer(`{"status":"ready"}`),
		"/workers":       jsonAnswer(`{"workers":[{"id":"w1","version":"1.2.3","host":"a","started":"2026-01-01T00:00:00Z"}]}`),
		"/servers":       jsonAnswer(`{"servers":[{"id":"s","initialization_state":"initialized","slots":4,"workers":[{"id":"w1","initialization_state":"initialized"}]}]}`),
		"/calls":         jsonAnswer(`{"calls":[]}`),
		"/configuration": jsonAnswer(`{"processes":[{"id":"f1","role":"frontdoor","parts":[{"part":"policy","version":"sha256:71accd489c1354","since":"2026-01-01T00:00:00Z","tried":"2026-01-01T00:00:00Z","outcome":"in force"}]}],"disagreements":[]}`),
	}}
}

func healthyApprover() *fakeSystem {
	return &fakeSystem{answers: map[string]answer{"/readyz": jsonAnswer(`{"status":"ready"}`), "/approvals": jsonAnswer(`{"approvals":[]}`)}}
}

func (p *fakeSystem) open(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("the doctor sent %s %s", r.Method, r.URL.Path)
		}
		a, ok := p.answers[r.URL.Path]
		if r.URL.Query().Get("principal") == "*" {
			if others, listed := p.answers[r.URL.Path+" of all"]; listed {
				a, ok = others, true
			}
		}
		if !ok {
			a = problemAnswer(http.StatusNotFound, `{"title":"Not found","status":404,"detail":"There is no such path."}`)
		}
		w.Header().Set("Date", time.Now().Add(p.clock).UTC().Format(http.TimeFormat))
		w.Header().Set("Content-Type", a.media)
		if a.status != 0 {
			w.WriteHeader(a.status)
		}
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func runDoctor(t *testing.T, door, approver string, more ...string) (said string, code int) {
	t.Helper()
	plainEnvironment(t)
	t.Setenv("CALLYARD_APPROVER_URL", "")
	t.Setenv("CALLYARD_APPROVER_KEY", "")
	root := &cobra.Command{Use: "callyard", SilenceErrors: true, SilenceUsage: true}
	root.PersistentFlags().String("url", "", "")
	root.PersistentFlags().String("key", "", "")
	addOutputFlags(root)
	root.AddCommand(doctorCommand())
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	if !slices.Contains(more, "--nats") { // ignore a NATS server on this machine
		more = append(more, "--nats", natsSaying(t, `{"host":"127.0.0.1","jetstream":true}`))
	}
	root.SetArgs(append([]string{"doctor", "--url", door, "--approver-url", approver}, more...))
	err := root.ExecuteContext(t.Context())
	showError(&out, err)
	return out.String(), exitCode(err)
}

func TestDoctorReportsNoFaultsInAHealthySystem(t *testing.T) {
	said, code := runDoctor(t, healthyFrontDoor().open(t), healthyApprover().open(t))
	if code != exitOK || !strings.Contains(said, "No faults.") || strings.Contains(said, "fault ") || strings.Contains(said, "note") {
		t.Errorf("code %d:\n%s", code, said)
	}
	for _, want := range []string{"front door: 1.2.3", "workers: 1 live", "servers: 1 of 1", "configuration: 1 processes, the latest version of their files is in force; policy 71accd489c13 since 2026-01-01T00:00:00Z", "call records: they can be read", "approver: 0 approvals"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
}

func TestDoctorReportsARedisThatTakesNoTokens(t *testing.T) {
	for metrics, c := range map[string]struct {
		says string
		code int
	}{
		"# TYPE callyard_redis_up gauge\ncallyard_redis_up 0\n": {"fault  Redis: it does not take confirmation tokens", exitToolError},
		"# TYPE callyard_redis_up gauge\ncallyard_redis_up 1\n": {"ok     Redis", exitOK},
		"callyard_other 0\n": {"No faults.", exitOK}, // without Redis
	} {
		door := healthyFrontDoor()
		door.answers["/metrics"] = answer{media: "text/plain", body: metrics}
		if said, code := runDoctor(t, door.open(t), healthyApprover().open(t)); code != c.code || !strings.Contains(said, c.says) || c.says == "No faults." && strings.Contains(said, "Redis") {
			t.Errorf("with %s code %d:\n%s", metrics, code, said)
		}
	}
}

// natsSaying starts a fake NATS server that sends the given INFO.
func natsSaying(t *testing.T, info string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "INFO "+info+"\r\n")
			_, _ = io.Copy(io.Discard, c) // until the doctor has read it
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return "nats://" + l.Addr().String()
}

func TestTheDoctorChecksTheAccessControlOfNATS(t *testing.T) {
	for info, c := range map[string]struct {
		says string
		code int
	}{
		`{"host":"0.0.0.0","jetstream":true}`:                      {"fault  NATS", exitToolError},
		`{"host":"0.0.0.0","jetstream":true,"auth_required":true}`: {"requires a credential", exitOK},
		`{"host":"127.0.0.1","jetstream":true}`:                    {"listens on this machine only", exitOK},
		`nonsense`:                                                 {"cannot be checked from here", exitOK},
	} {
		said, code := runDoctor(t, healthyFrontDoor().open(t), healthyApprover().open(t), "--nats", natsSaying(t, info))
		if code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%s: code %d:\n%s", info, code, said)
		}
	}
}

// A node without JetStream keeps no copies of streams, and without any, front doors do not start.
func TestTheDoctorNamesNATSServersWithoutJetStream(t *testing.T) {
	const with, without = `{"host":"127.0.0.1","jetstream":true,"cluster":"c"}`, `{"host":"127.0.0.1","cluster":"c"}`
	door, closed := healthyFrontDoor().open(t), httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for name, c := range map[string]struct {
		door  string
		infos []string
		says  string
		code  int
	}{
		"in a cluster of others":        {door, []string{with, without}, "has no JetStream, and 127.0.0.1:", exitToolError},
		"a leaf node":                   {door, []string{with, `{"host":"127.0.0.1"}`}, "No faults", exitOK},
		"the others are not named":      {door, []string{without}, "note   NATS: 127.0.0.1:", exitOK},
		"the front door does not start": {closed.URL, []string{without}, "without it, front doors and approvers do not start", exitToolError},
	} {
		urls := make([]string, len(c.infos))
		for i, info := range c.infos {
			urls[i] = natsSaying(t, info)
		}
		said, code := runDoctor(t, c.door, healthyApprover().open(t), "--nats", strings.Join(urls, ","))
		if code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%s: code %d:\n%s", name, code, said)
		}
	}
}

func TestTheDoctorNamesWorkersThatDoNotTrustTheKeyOfWarrants(t *testing.T) {
	p := healthyFrontDoor()
	p.answers["/configuration"] = jsonAnswer(`{"processes":[{"id":"a1","role":"approver","parts":[]},{"id":"w1","role":"worker","parts":[]}],
		"disagreements":[{"part":"people_keys","versions":[{"version":"key9","processes":["a1"]},{"version":"none","processes":["w1"]}]}]}`)
	said, code := runDoctor(t, p.open(t), healthyApprover().open(t))
	for _, want := range []string{"fault  warrants: workers refuse the calls that people approve", "a1 signs with key9; w1 trusts none", "warrants.people_keys", "1 fault."} {
		if code != exitToolError || !strings.Contains(said, want) {
			t.Errorf("code %d; it does not say %q:\n%s", code, want, said)
		}
	}
}

func TestTheDoctorNamesProcessesWithoutAKeyForWarrants(t *testing.T) {
	p := healthyFrontDoor()
	p.answers["/configuration"] = jsonAnswer(`{"processes":[{"id":"f1","role":"frontdoor","parts":[]},{"id":"w1","role":"worker","parts":[]}],
		"disagreements":[{"part":"caller_keys","versions":[{"version":"none","processes":["f1"]},{"version":"key9","processes":["w1"]}]}]}`)
	said, code := runDoctor(t, p.open(t), healthyApprover().open(t))
	for _, want := range []string{"fault  warrants: workers refuse the calls that their callers confirm, because frontdoor f1 has no key", "w1 trusts key9", "warrants.key_file", "warrants.caller_keys", "1 fault."} {
		if code != exitToolError || !strings.Contains(said, want) {
			t.Errorf("code %d; it does not say %q:\n%s", code, want, said)
		}
	}
}

func TestTheDoctorNamesEachNATSServerThatDoesNotRespond(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts connections for a stopped process
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	frozen, dead := silent.Addr().String(), closed.Addr().String()
	urls := "nats://" + frozen + ",nats://" + dead + "," + natsSaying(t, `{"host":"127.0.0.1","jetstream":true,"auth_required":true}`)
	said, code := runDoctor(t, healthyFrontDoor().open(t), healthyApprover().open(t), "--nats", urls)
	for _, want := range []string{"fault  NATS: " + frozen + " accepts connections and does not respond", "fault  NATS: " + dead + " does not run", "requires a credential", "2 faults"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	if code != exitToolError {
		t.Errorf("code %d", code)
	}
}

func TestTheDoctorNamesFaultsAndFixes(t *testing.T) {
	problem503 := func(detail string) answer {
		return problemAnswer(http.StatusServiceUnavailable, `{"title":"Unavailable","status":503,"detail":"`+detail+`","retryable":true}`)
	}
	hence := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	for name, c := range map[string]struct {
		change      func(door, approver *fakeSystem)
		says, fixes string
	}{
		"NATS is not reachable": {func(d, _ *fakeSystem) { d.answers["/readyz"] = problem503("Not ready: NATS is RECONNECTING.") }, "NATS is RECONNECTING", "start nats-server"},
		"the front door drains": {func(d, _ *fakeSystem) { d.answers["/readyz"] = problem503("Not ready: the front door is draining.") }, "draining", "restart it"},
		"no workers":            {func(d, _ *fakeSystem) { d.answers["/workers"] = jsonAnswer(`{"workers":[]}`) }, "workers: there are none", "start one"},
		"all workers drain":     {func(d, _ *fakeSystem) { d.answers["/workers"] = jsonAnswer(`{"workers":[{"id":"w","draining":true}]}`) }, "all 1 are draining", "start another one"},
		"a worker's clock differs": {func(d, _ *fakeSystem) {
			d.answers["/workers"] = jsonAnswer(`{"workers":[{"id":"w","host":"sandbox7","started":"` + hence(time.Hour) + `"}]}`)
		}, "worker w: it reports a start time", "clock of sandbox7"},
		"a failed server": {func(d, _ *fakeSystem) {
			d.answers["/servers"] = jsonAnswer(`{"servers":[{"id":"sad","initialization_state":"error","error":"exec: no such file"}]}`)
		}, "server sad: it is not running: exec: no such file", "callyard servers show sad"},
		"a slow server": {func(d, _ *fakeSystem) {
			d.answers["/servers"] = jsonAnswer(`{"servers":[{"id":"sad","initialization_state":"timeout"}]}`)
		}, "not ready in time", "startTimeout"},
		"a server that fails on one worker": {func(d, _ *fakeSystem) {
			d.answers["/servers"] = jsonAnswer(`{"servers":[{"id":"s","initialization_state":"initialized","workers":[{"id":"w1","initialization_state":"initialized"},{"id":"w2","initialization_state":"error","error":"no such program"}]}]}`)
		}, "is not running on worker w2: no such program", "is missing on that worker"},
		"no sandbox": {func(d, _ *fakeSystem) {
			d.answers["/servers"] = jsonAnswer(`{"servers":[{"id":"s","initialization_state":"initialized","sandbox":{"isolation":"container","ready":false,"error":"no engine"}}]}`)
		}, "no container is ready: no engine", "docs/how-to/containers.md"},
		"the call records are lost":      {func(d, _ *fakeSystem) { d.answers["/calls"] = problem503("The call records cannot be read.") }, "call records: they cannot be read", "JetStream"},
		"the front door's clock differs": {func(d, _ *fakeSystem) { d.clock = -time.Hour }, "front door: its clock and the local clock differ", "NTP"},
		"the approver's clock differs":   {func(_, a *fakeSystem) { a.clock = time.Hour }, "approver: its clock", "NTP"},
		"an approval waits": {func(_, a *fakeSystem) {
			a.answers["/approvals"] = jsonAnswer(`{"approvals":[{"id":"appr_1","server":"pay","tool":"send","created_at":"` + hence(-2*time.Hour) + `","expires_at":"` + hence(time.Hour) + `"}]}`)
		}, "approval appr_1: send of pay has been waiting for approval for 2h0m", "callyard approvals show appr_1"},
		"the approver is not ready":           {func(_, a *fakeSystem) { a.answers["/readyz"] = problem503("Not ready: Redis does not answer.") }, "approver: Not ready: Redis", "start Redis"},
		"the approver cannot read its ledger": {func(_, a *fakeSystem) { a.answers["/approvals"] = problem503("The ledger cannot be read.") }, "approver: The ledger cannot be read", "nobody can decide"},
		"a wrong key": {func(d, _ *fakeSystem) {
			d.answers["/version"] = problemAnswer(http.StatusUnauthorized, `{"title":"No","status":401,"detail":"The API key is not known here."}`)
		}, "front door: The API key is not known here", "CALLYARD_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			door, approver := healthyFrontDoor(), healthyApprover()
			c.change(door, approver)
			said, code := runDoctor(t, door.open(t), approver.open(t))
			if code != exitToolError || strings.Count(said, "fault  ") != 1 {
				t.Fatalf("code %d, and one fault was expected:\n%s", code, said)
			}
			_, fault, _ := strings.Cut(said, "fault  ")
			if says, fix, _ := strings.Cut(fault, "\n"); !strings.Contains(says, c.says) || !strings.Contains(strings.SplitN(fix, "\n", 2)[0], c.fixes) {
				t.Errorf("it does not say %q and %q:\n%s", c.says, c.fixes, said)
			}
		})
	}
}

func TestASlowResponseIsNoDifferenceOfTheClocks(t *testing.T) {
	now := time.Now().Add(-90 * time.Second)
	x := examination{c: &client{base: healthyFrontDoor().open(t), http: &http.Client{}}, now: func() time.Time {
		now = now.Add(time.Minute) // each request takes a minute, and the server answers in the middle of it
		return now
	}}
	if err := x.c.connect(); err != nil {
		t.Fatal(err)
	}
	if !x.frontDoor(t.Context()) || strings.Contains(fmt.Sprint(x.findings), "clock") {
		t.Errorf("%v", x.findings)
	}
}

func TestDoctorNotesDoNotFail(t *testing.T) {
	door := healthyFrontDoor()
	door.answers["/workers"] = jsonAnswer(`{"workers":[{"id":"a","version":"1"},{"id":"b","version":"2"}]}`)
	door.answers["/servers"] = jsonAnswer(`{"servers":[{"id":"s","initialization_state":"initialized","slots":2,"in_flight":2,"waiting":7,"workers":[{"id":"a","initialization_state":"initialized","restarts":9}]},{"id":"new","initialization_state":"starting"}]}`)
	door.answers["/calls"] = jsonAnswer(`{"calls":[{"id":"call_x"}]}`)
	said, code := runDoctor(t, door.open(t), healthyApprover().open(t))
	if code != exitOK {
		t.Errorf("code %d:\n%s", code, said)
	}
	for _, want := range []string{"different versions: 1, 2", "replaced 9 times", "all its 2 slots are in use and 7 calls are waiting", "server new: it is starting", "such as call_x"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
}

func TestTheDoctorNamesUnknownCallsOfAllWhomTheKeyMaySee(t *testing.T) {
	door := healthyFrontDoor()
	door.answers["/calls"] = jsonAnswer(`{"calls":[]}`)
	door.answers["/calls of all"] = jsonAnswer(`{"calls":[{"id":"call_open"}]}`)
	if said, _ := runDoctor(t, door.open(t), healthyApprover().open(t)); !strings.Contains(said, "the outcome of 1 of the calls of the last day is unknown, such as call_open") || !strings.Contains(said, "--principal '*'") {
		t.Errorf("a call of a program is unknown:\n%s", said)
	}
	door.answers["/calls of all"] = problemAnswer(http.StatusForbidden, `{"title":"Forbidden","status":403,"detail":"You can list only your own calls."}`)
	if said, _ := runDoctor(t, door.open(t), healthyApprover().open(t)); !strings.Contains(said, "none of your calls of the last day has an unknown outcome") {
		t.Errorf("the key sees only its own calls:\n%s", said)
	}
}

func TestTheDoctorReportsUnreachableProcesses(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	said, code := runDoctor(t, s.URL, healthyApprover().open(t))
	if code != exitToolError || !strings.Contains(said, "not reachable") || !strings.Contains(said, "1 fault.") {
		t.Errorf("the front door is away: code %d:\n%s", code, said)
	}
	said, code = runDoctor(t, healthyFrontDoor().open(t), s.URL)
	if code != exitToolError || !strings.Contains(said, "nobody can decide") {
		t.Errorf("the approver is away: code %d:\n%s", code, said)
	}
}

func TestDoctorSkipsApproverWithUnknownAddress(t *testing.T) {
	var x examination // without an approver
	x.approvals(t.Context())
	if len(x.findings) != 1 || x.findings[0].Level != levelNote || !strings.Contains(fmt.Sprint(x.findings), "--approver-url") {
		t.Errorf("%v", x.findings)
	}
}

func TestDoctorPrintsJSON(t *testing.T) {
	door := healthyFrontDoor()
	door.answers["/readyz"] = problemAnswer(http.StatusServiceUnavailable, `{"title":"Unavailable","status":503,"detail":"Not ready: NATS is closed.","retryable":true}`)
	said, code := runDoctor(t, door.open(t), healthyApprover().open(t), "--json")
	var report struct {
		Faults   int       `json:"faults"`
		Findings []finding `json:"findings"`
	}
	if err := json.Unmarshal([]byte(said), &report); err != nil || code != exitToolError || report.Faults != 1 {
		t.Fatalf("code %d, %v:\n%s", code, err, said)
	}
	found := fmt.Sprint(report.Findings)
	if !strings.Contains(found, "NATS is closed") || !strings.Contains(found, "start nats-server") {
		t.Error(found)
	}
}

func TestDoctorLimitsListedApprovals(t *testing.T) {
	approver := healthyApprover()
	var list []string
	for i := range shownMost + 3 {
		list = append(list, fmt.Sprintf(`{"id":"a%d","created_at":"2026-01-01T00:00:00Z","expires_at":"2036-01-01T00:00:00Z"}`, i))
	}
	approver.answers["/approvals"] = jsonAnswer(`{"approvals":[` + strings.Join(list, ",") + `]}`)
	said, code := runDoctor(t, healthyFrontDoor().open(t), approver.open(t))
	if code != exitToolError || strings.Count(said, "fault  approval a") != shownMost || !strings.Contains(said, "3 more have been waiting longer") {
		t.Errorf("code %d:\n%s", code, said)
	}
}

func TestTheDoctorFindsRefusedEditsAndProcessesThatDisagree(t *testing.T) {
	p := healthyFrontDoor()
	p.answers["/configuration"] = jsonAnswer(`{"processes":[
		{"id":"f1","role":"frontdoor","parts":[{"part":"policy","version":"sha256:aaaa","since":"2026-01-01T00:00:00Z","tried":"2026-01-02T00:00:00Z","outcome":"refused","error":"p.yaml:3:1: rules[0].level: must be a whole number from 1 to 3."}]},
		{"id":"w1","role":"worker","parts":[{"part":"policy","version":"sha256:bbbb","since":"2026-01-02T00:00:00Z","tried":"2026-01-02T00:00:00Z","outcome":"in force"}]}],
		"disagreements":[{"part":"policy","versions":[{"version":"sha256:aaaa","processes":["f1"]},{"version":"sha256:bbbb","processes":["w1"]}]},{"part":"servers","server":"files","versions":[{"version":"1","processes":["w1"]},{"version":"2","processes":["w2"]}]}]}`)
	said, code := runDoctor(t, p.open(t), healthyApprover().open(t))
	if code != exitToolError {
		t.Errorf("code %d", code)
	}
	for _, want := range []string{
		"frontdoor f1: the last edit of its policy (2026-01-02T00:00:00Z) is not in force; version aaaa of 2026-01-01T00:00:00Z is: p.yaml:3:1", "callyard config check",
		"different versions of the policy: aaaa at f1; bbbb at w1", "different versions of the entry of server files: 1 at w1; 2 at w2", "3 faults",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
}

func TestFindingsFitTheTerminal(t *testing.T) {
	var out bytes.Buffer
	x := &examination{out: screen{w: &out, width: 40}}
	x.ok("front door", "it answers.")
	x.fault("call records", "the front door has dropped records of calls.", "see why with `callyard servers list`, then start it again")
	if err := x.printForPeople(1); err != nil {
		t.Fatal(err)
	}
	const want = "ok     front door: it answers.\nfault  call records: the front door has\n       dropped records of calls.\n       fix: see why with\n            `callyard servers list`,\n            then start it again\n\n1 fault.\n"
	if out.String() != want {
		t.Errorf("printed:\n%s", out.String())
	}
}
