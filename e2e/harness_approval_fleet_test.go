package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/mcptest"
)

// The servers of a fleet. Calls of the first wait for their caller, and calls
// of the second for approvers. The approval of an effect whose ID ends in "overdue" expires
// after a moment.
const (
	callersServer = "pay"
	peoplesServer = "grant"
)

// approvalFleet is a fleet of separate processes, whose calls need an approval.
type approvalFleet struct {
	nats      *natsProcess
	doors     []*door
	approvers []*door // doors, because they have a port and readiness like front doors
	workers   []*workerProcess

	effects string // the file in which each run writes a line
	wide    *http.Client

	door, approver, worker setup // for restarting each of them
	natsDir                string
}

// staff is the number of processes of each kind in a fleet, and its Redis: a
// section of the configuration, or none.
type staff struct {
	doors, approvers, workers int
	redis                     string
	env                       []string         // of all of them
	servers                   map[string]entry // in addition to those of the fleet
}

// The approvers of the fleet, and an observer who may decide nothing. Their
// names are their keys.
var deciders = [...]string{"ann", "ben", "cleo", "dora"}

const auditor = "otto"

const bureauPolicy = `
rules:
  - name: soon over
    match: {server: ` + callersServer + `, tool: effect}
    when: args.id.endsWith("caller overdue")
    approval: {by: caller, expires: 4s}
  - name: soon over for people
    match: {server: ` + peoplesServer + `, tool: effect}
    when: args.id.endsWith("people overdue")
    approval: {groups: [ops], expires: 4s}
  - name: two must agree
    match: {server: ` + peoplesServer + `, tool: effect}
    when: args.id.startsWith("two ")
    approval: {groups: [ops], needed: 2, expires: 20m}
  - name: people
    match: {server: ` + peoplesServer + `, tool: effect}
    approval: {groups: [ops], expires: 20m}
`

// openApprovalFleet starts a fleet and waits until calls can be held and run.
func openApprovalFleet(t testing.TB, s staff) *approvalFleet {
	t.Helper()
	b := &approvalFleet{effects: filepath.Join(t.TempDir(), "effects"), natsDir: t.TempDir(), wide: newParallelClient(t)}
	b.nats = startNATS(t, b.natsDir)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "policy.yaml"), bureauPolicy)
	keys := ""
	for _, name := range append(deciders[:len(deciders):len(deciders)], auditor) {
		group := "ops"
		if name == auditor {
			group = "auditors"
		}
		keys += fmt.Sprintf("    - {name: %s, groups: [%s], hash: \"sha256:%x\"}\n", name, group, sha256.Sum256([]byte(name)))
	}
	callers, forCallers := warrantKeys(t, "frontdoor")
	people, forPeople := warrantKeys(t, "approver")
	config := s.redis + "approver:\n  drain_delay: 1ms\n  observer_groups: [auditors]\n  keys:\n" + keys
	b.door = setup{nats: b.nats.url, config: config, env: []string{quickStop, "CALLYARD_WARRANTS_KEY_FILE=" + callers}, flags: []string{"--policy", filepath.Join(dir, "policy.yaml")}}
	b.approver = setup{nats: b.nats.url, config: config, env: []string{"CALLYARD_WARRANTS_KEY_FILE=" + people}}
	b.worker = setup{
		nats: b.nats.url, env: []string{"CALLYARD_WARRANTS_CALLER_KEYS=" + forCallers, "CALLYARD_WARRANTS_PEOPLE_KEYS=" + forPeople},
		servers: serversFile(t, map[string]entry{callersServer: risky(2, scripted(mcptest.Echo)), peoplesServer: risky(2, scripted(mcptest.Echo))}),
	}
	if len(s.servers) > 0 {
		all := map[string]entry{callersServer: risky(2, scripted(mcptest.Echo)), peoplesServer: risky(2, scripted(mcptest.Echo))}
		maps.Copy(all, s.servers)
		b.worker.servers = serversFile(t, all)
	}
	for _, of := range []*setup{&b.door, &b.approver, &b.worker} {
		of.env = append(of.env, s.env...)
	}
	for range s.workers {
		b.workers = append(b.workers, startWorker(t, b.worker))
	}
	for range s.doors {
		b.doors = append(b.doors, startFrontDoor(t, b.door))
	}
	for range s.approvers {
		b.approvers = append(b.approvers, startApprover(t, b.approver))
	}
	b.ready(t)
	return b
}

// ready waits until every front door reports the servers on every worker.
func (b *approvalFleet) ready(t testing.TB) {
	t.Helper()
	for _, d := range b.doors {
		d.waitServers(t, len(b.workers), callersServer, peoplesServer)
	}
}

// startApprover starts an approver and waits until it accepts decisions.
func startApprover(t testing.TB, s setup) *door {
	t.Helper()
	d := &door{process: start(t, s.program(t, "approver"))}
	d.open(t, d.says(t, `approver is open.*"url":"(http://[^"]+)"`)[1])
	return d
}

// newParallelClient returns a client for many concurrent requests.
func newParallelClient(t testing.TB) *http.Client {
	transport := &http.Transport{
		DialContext: (&net.Dialer{Timeout: 20 * time.Second}).DialContext, MaxIdleConnsPerHost: 1000, DisableCompression: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: askAgain{transport}, Timeout: answerWithin}
}

// askAgain resends a request once if its connection was being closed by the server.
// Of many connections that are dialed concurrently some are never used, and a server closes
// a connection without a request after some seconds. If the server had accepted the request,
// it would run twice, which the tests detect.
type askAgain struct{ next http.RoundTripper }

func (a askAgain) RoundTrip(r *http.Request) (*http.Response, error) {
	idle := false
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { idle = info.WasIdle }})
	resp, err := a.next.RoundTrip(r.WithContext(ctx))
	if err == nil || !idle || !errors.Is(err, io.EOF) || r.GetBody == nil {
		return resp, err
	}
	again := r.Clone(r.Context())
	var bodyErr error
	if again.Body, bodyErr = r.GetBody(); bodyErr != nil {
		return nil, errors.Join(err, bodyErr)
	}
	return a.next.RoundTrip(again)
}

// heldCall is a held call in the view of its approvers.
type heldCall struct {
	held
	id     string // of its effect
	people bool   // approvers decide it, not the caller
	digest string // of the arguments that the approvers saw
}

// asked holds a call of the tool effect at a front door. ms is the time that the tool
// takes after its effect.
func (b *approvalFleet) asked(t testing.TB, d *door, people bool, id string, ms int) *heldCall {
	t.Helper()
	q := &heldCall{id: id, people: people}
	server := callersServer
	if people {
		server = peoplesServer
	}
	a := d.ask(t, "POST", toolPath(server, "effect")+"?timeout_ms=20000", fmt.Sprintf(`{"path":%q,"id":%q,"ms":%d}`, b.effects, id, ms))
	if err := json.Unmarshal(a.body, &q.held); err != nil || a.status != http.StatusAccepted || q.CallID == "" || (q.ID == "") != people {
		t.Fatalf("holding %s is answered with %d %s", id, a.status, a.body)
	}
	return q
}

// shown loads the call as an approver, because a decision names the arguments that were seen.
func (b *approvalFleet) shown(t testing.TB, at *door, q *heldCall) {
	t.Helper()
	var seen struct {
		Digest string `json:"arguments_digest"`
	}
	at.eventually(t, soon, "showing "+q.id, func() error {
		a, err := at.try("GET", "/approvals/"+q.ApprovalID, "", "X-API-Key: "+deciders[0])
		if err == nil && a.status != http.StatusOK {
			err = &refusal{a}
		}
		if err != nil {
			return err
		}
		return json.Unmarshal(a.body, &seen)
	})
	if q.digest = seen.Digest; q.digest == "" {
		t.Fatalf("%s is shown without a digest", q.id)
	}
}

// confirms sends the caller's confirmation or refusal.
func (b *approvalFleet) confirms(at *door, q *heldCall, yes bool) (answer, error) {
	return send(b.wide, at.url, "POST", "/confirmations/"+q.ID, fmt.Sprintf(`{"confirm":%t}`, yes))
}

// decides sends an approver's decision.
func (b *approvalFleet) decides(at *door, q *heldCall, person, kind string) (answer, error) {
	return send(b.wide, at.url, "POST", "/approvals/"+q.ApprovalID+"/decisions", fmt.Sprintf(`{"kind":%q,"digest":%q}`, kind, q.digest), "X-API-Key: "+person)
}

// ended polls the call until it has ended, and returns its state. It asks again if a front door
// does not know the state.
func (b *approvalFleet) ended(t testing.TB, at *door, q *heldCall) (s callState) {
	t.Helper()
	at.eventually(t, answerWithin, "telling what came of "+q.id, func() error {
		a, err := send(b.wide, at.url, "GET", "/calls/"+q.CallID+"?wait=5", "")
		if err == nil && a.status != http.StatusOK {
			err = &refusal{a}
		}
		if err == nil {
			s = callState{}
			err = json.Unmarshal(a.body, &s)
		}
		if err == nil && (s.State == "held" || s.State == "queued" || s.State == "running") {
			err = errors.New("it is " + s.State)
		}
		return err
	})
	return s
}

// checkState returns an error unless the state that a caller sees matches the number of
// effects.
func (q *heldCall) checkState(s callState, effects int) error {
	switch s.State {
	case "succeeded":
		if effects != 1 || !strings.Contains(string(s.Result), "done "+q.id) {
			return fmt.Errorf("%s succeeded with %s, and has had %d effects", q.id, s.Result, effects)
		}
	case "unknown":
		if effects > 1 {
			return fmt.Errorf("%s is unknown, and has had %d effects", q.id, effects)
		}
	default:
		if effects != 0 {
			return fmt.Errorf("%s is %s, and has had %d effects", q.id, s.State, effects)
		}
	}
	return nil
}

// freeze stops a process with SIGSTOP, and waits until it has stopped. It is
// continued with the end of the test at the latest, so that it can end.
func (p *process) freeze(t testing.TB) {
	t.Helper()
	p.signal(t, syscall.SIGSTOP)
	t.Cleanup(p.thaw)
	waitUntilStopped(t, p.pid())
}

// waitUntilStopped waits until a process that got SIGSTOP has stopped.
func waitUntilStopped(t testing.TB, pid int) {
	t.Helper()
	eventually(t, soon, "standing still", func() error {
		if !frozen(pid) {
			return errors.New("a thread of it runs")
		}
		return nil
	})
}

// thaw continues a frozen process.
func (p *process) thaw() { _ = p.Cmd.Process.Signal(syscall.SIGCONT) } // it may have been killed
