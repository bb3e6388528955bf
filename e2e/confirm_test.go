package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// held is the response to a call that waits for a confirmation.
type held struct {
	Requires   bool   `json:"requires_confirmation"`
	ID         string `json:"confirmation_id"`
	CallID     string `json:"call_id"`
	ApprovalID string `json:"approval_id"`
	Level      int    `json:"risk_level"`
	Words      string `json:"risk_description"`
	Server     string `json:"server_id"`
	Method     string `json:"method"`
	Tool       string `json:"tool_name"`
	Expires    string `json:"expires_at"`
}

func risky(level int, e entry) entry {
	e.RiskLevel = level
	return e
}

// hold sends a call that is held.
func (d *door) hold(t testing.TB, server, tool, arguments string) held {
	t.Helper()
	a := d.ask(t, "POST", "/servers/"+server+"/tools/"+tool, arguments)
	var h held
	if err := json.Unmarshal(a.body, &h); err != nil || a.status != http.StatusAccepted || h.ID == "" {
		t.Fatalf("a call of medium risk is answered with %d %s", a.status, a.body)
	}
	return h
}

func (d *door) confirm(t testing.TB, id, answer string) answer {
	t.Helper()
	return d.ask(t, "POST", "/confirmations/"+id, `{"confirm":`+answer+`}`)
}

type callState struct {
	State   string          `json:"state"`
	Result  json.RawMessage `json:"result"`
	Problem json.RawMessage `json:"problem"`
}

func (d *door) callState(t testing.TB, id string) callState {
	t.Helper()
	var s callState
	d.read(t, "/calls/"+id+"?wait=10", &s)
	return s
}

func TestTheTwoStepFlowOfMCPBridgeWorks(t *testing.T) {
	t.Parallel()
	effects := filepath.Join(t.TempDir(), "effects")
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{"pay": risky(2, scripted(mcptest.Echo)), "calm": scripted(mcptest.Echo)})})
	d.waitServers(t, 1, "pay", "calm")
	effect := func(id string) string { return fmt.Sprintf(`{"path":%q,"id":%q}`, effects, id) }

	h := d.hold(t, "pay", "effect", effect("one"))
	if !h.Requires || h.Level != 2 || h.Words != "Medium risk - Requires confirmation" || h.Server != "pay" || h.Method != "tools/call" || h.Tool != "effect" || h.Expires == "" {
		t.Errorf("the confirmation request is %+v", h)
	}
	if s := d.callState(t, h.CallID); s.State != "held" {
		t.Errorf("before the confirmation the call is %s", s.State)
	}
	if a := d.confirm(t, h.ID, "true"); a.status != http.StatusOK {
		t.Fatalf("confirmed: %d %s", a.status, a.body)
	}
	again := d.confirm(t, h.ID, "true").problem(t, http.StatusNotFound, "not-found")
	if again.CallID != h.CallID {
		t.Errorf("a used confirmation names call %q, not %q", again.CallID, h.CallID)
	}
	if s := d.callState(t, h.CallID); s.State != "succeeded" || len(s.Result) == 0 {
		t.Errorf("afterwards the call is %+v", s)
	}
	no := d.hold(t, "pay", "effect", effect("two"))
	var rejected struct{ Status string }
	if a := d.confirm(t, no.ID, "false"); json.Unmarshal(a.body, &rejected) != nil || rejected.Status != "rejected" {
		t.Errorf("rejected: %d %s", a.status, a.body)
	}
	d.confirm(t, no.ID, "true").problem(t, http.StatusNotFound, "not-found")
	d.confirm(t, "cyt_nonsense", "true").problem(t, http.StatusNotFound, "not-found")
	d.ask(t, "POST", "/confirmations/"+no.ID, `{"confirm":"yes"}`).problem(t, http.StatusBadRequest, "invalid-request")
	for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
		w := d.hold(t, "pay", "effect", effect("looked at"))
		d.ask(t, method, "/confirmations/"+w.ID, "")
		if s := d.callStateNow(t, w.CallID); s.State != "held" {
			t.Errorf("%s made it %s", method, s.State)
		}
	}
	if got := readEffects(t, effects); len(got) != 1 || got["one"] != 1 {
		t.Errorf("the effects are %v", got)
	}
}

func (d *door) callStateNow(t testing.TB, id string) callState {
	t.Helper()
	var s callState
	d.read(t, "/calls/"+id, &s)
	return s
}

func readEffects(t testing.TB, path string) map[string]int {
	t.Helper()
	count, err := mcptest.ReadEffects(path)
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func TestAHeldCallSurvivesAKillOfEverything(t *testing.T) {
	data, effects := t.TempDir(), filepath.Join(t.TempDir(), "effects")
	s := setup{data: data, servers: serversFile(t, map[string]entry{"pay": risky(2, scripted(mcptest.Echo))})}
	d := startUp(t, s)
	d.waitServers(t, 1, "pay")
	h := d.hold(t, "pay", "effect", fmt.Sprintf(`{"path":%q,"id":"x"}`, effects))
	d.kill9(t)
	d = startUp(t, s)
	d.waitServers(t, 1, "pay")
	if got := d.callStateNow(t, h.CallID); got.State != "held" {
		t.Fatalf("after the restart it is %s", got.State)
	}
	if a := d.confirm(t, h.ID, "true"); a.status != http.StatusOK {
		t.Fatalf("confirmed: %d %s", a.status, a.body)
	}
	if got := readEffects(t, effects); got["x"] != 1 {
		t.Errorf("the effects are %v", got)
	}
}

// startRedis runs a redis-server for the test and returns its URL.
func startRedis(t testing.TB) string {
	t.Helper()
	return "redis://" + confirmtest.StartRedis(t, "", porttest.Address(t)).Address
}

func TestConfirmationRunsOnceOverTwoFrontDoorsAndRedis(t *testing.T) {
	redis, nats := startRedis(t), startNATS(t, t.TempDir())
	effects := filepath.Join(t.TempDir(), "effects")
	signs, trusts := callerKeys(t)
	startWorker(t, setup{nats: nats.url, env: trusts, servers: serversFile(t, map[string]entry{"pay": risky(2, scripted(mcptest.Echo))})})
	doors := make([]*door, 2)
	for i := range doors {
		doors[i] = startFrontDoor(t, setup{nats: nats.url, env: signs, flags: []string{"--redis", redis}})
	}
	for _, d := range doors {
		d.waitServers(t, 1, "pay")
	}
	const tokens, racers = 20, 20
	for n := range tokens {
		h := doors[n%2].hold(t, "pay", "effect", fmt.Sprintf(`{"path":%q,"id":"t%d"}`, effects, n))
		var ran, told atomic.Int64
		var wg sync.WaitGroup
		for i := range racers {
			wg.Go(func() {
				a, err := doors[i%2].try("POST", "/confirmations/"+h.ID, `{"confirm":true}`)
				switch {
				case err != nil:
					t.Error(err)
				case a.status == http.StatusOK:
					ran.Add(1)
				case a.status == http.StatusNotFound:
					told.Add(1)
				default:
					t.Errorf("%d %s", a.status, a.body)
				}
			})
		}
		wg.Wait()
		if ran.Load() != 1 || told.Load() != racers-1 {
			t.Errorf("token %d: %d ran, %d were told", n, ran.Load(), told.Load())
		}
	}
	got := readEffects(t, effects)
	for n := range tokens {
		if got[fmt.Sprint("t", n)] != 1 {
			t.Errorf("token %d had %d effects", n, got[fmt.Sprint("t", n)])
		}
	}
}

func TestPolicyHoldsDeniesAndAllows(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, `
rules:
  - name: no failing
    match: {server: "*", tool: fail}
    deny: this tool is not for agents
  - name: big sleeps
    match: {tool: sleep}
    when: args.ms > 100
    approval: {by: caller}
  - name: the rest
    match: {server: "*"}
    level: 1
`)
	d := startUp(t, setup{flags: []string{"--policy", policy}, servers: serversFile(t, map[string]entry{"s": scripted(mcptest.Echo)})})
	d.waitServers(t, 1, "s")
	d.call(t, "s", "echo", `{"text":"x"}`)
	d.call(t, "s", "sleep", `{"ms":1}`)
	d.hold(t, "s", "sleep", `{"ms":101}`)
	d.ask(t, "POST", "/servers/s/tools/fail", `{}`).problem(t, http.StatusForbidden, "forbidden")
	d.ask(t, "POST", "/calls", `{"server":"s","tool":"fail","arguments":{}}`).problem(t, http.StatusForbidden, "forbidden")
	// It is reloaded while the door runs.
	write(t, policy, "rules:\n  - {name: nothing, match: {server: \"*\"}, deny: closed}\n")
	d.eventually(t, soon, "the new policy", func() error {
		if a := d.ask(t, "POST", "/servers/s/tools/echo", `{"text":"x"}`); a.status != http.StatusForbidden {
			return fmt.Errorf("it answers %d", a.status)
		}
		return nil
	})
}
