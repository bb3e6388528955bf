package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/mcptest"
)

// backWithin is the promise for a killed server: the next call succeeds
// within this time.
const backWithin = 2 * time.Second

// kill9 kills a process that the test did not start itself.
func kill9(t testing.TB, pid int) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("there is no process %d to kill", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("killing process %d: %v", pid, err)
	}
}

// hasEffect waits until the tool effect has written id, so the call is running.
func hasEffect(t testing.TB, path, id string) {
	t.Helper()
	eventually(t, soon, "the call "+id+" runs", func() error {
		effects, err := mcptest.ReadEffects(path)
		if err == nil && effects[id] == 0 {
			err = errors.New("it has had no effect yet")
		}
		return err
	})
}

func TestServerKilledDuringACallFailsThatCallOnly(t *testing.T) {
	servers := map[string]entry{"victim": scripted(mcptest.Echo), "neighbour": scripted(mcptest.Echo)}
	up := startUp(t, setup{servers: serversFile(t, servers), env: []string{quickStop}})
	up.waitServers(t, 1, "victim", "neighbour")
	others := startLoad(t, 4, func(lane, n int) error { return up.echo("neighbour", fmt.Sprint(lane, " ", n)) })

	effects := filepath.Join(t.TempDir(), "effects")
	answers := make(chan answer, 1)
	failed := make(chan error, 1)
	go func() {
		a, err := up.tryCall("victim", "effect", fmt.Sprintf(`{"path":%q,"id":"once","ms":60000}`, effects))
		answers <- a
		failed <- err
	}()
	hasEffect(t, effects, "once")
	kill9(t, up.server(t, "victim").PID)
	var a answer
	select {
	case a = <-answers:
	case <-time.After(30 * time.Second): // less than the call takes
		t.Fatal("the call whose server was killed never ends")
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	p := a.problem(t, 504, "outcome-unknown")
	if p.CallID == "" || p.Retryable {
		t.Errorf("a call that may have run is named and not offered for repeating: %s", a.body)
	}

	began := time.Now()
	if err := up.echo("victim", "back again"); err != nil {
		t.Errorf("the next call fails: %v", err)
	}
	if took := time.Since(began); took > 10*backWithin { // tolerate a loaded machine
		t.Errorf("the next call took %s, promised are %s", took, backWithin)
	}
	others.more(t, 100)
	others.end()
	others.none(t, "calls of the neighbour")
	if got, err := mcptest.ReadEffects(effects); err != nil || got["once"] != 1 {
		t.Errorf("the call had its effect %d times, %v", got["once"], err)
	}
}

func TestSafeCallSurvivesKillOfItsServer(t *testing.T) {
	up := startUp(t, setup{servers: serversFile(t, map[string]entry{"victim": trusted(scripted(mcptest.Echo))}), env: []string{quickStop}})
	up.waitServers(t, 1, "victim")
	l := startLoad(t, 4, func(lane, n int) error { return up.echo("victim", fmt.Sprint(lane, " ", n)) })
	for range 5 {
		l.more(t, 50)
		kill9(t, up.server(t, "victim").PID)
		l.more(t, 50)
	}
	l.end()
	l.none(t, "safe calls while their server is killed")
}

func TestKilledWorkerEndsItsProcessesAndOtherWorkerContinues(t *testing.T) {
	nats := startNATS(t, t.TempDir())
	pids := filepath.Join(t.TempDir(), "pids")
	first := serversFile(t, map[string]entry{
		"plain": scripted(mcptest.Echo), "safe": trusted(scripted(mcptest.Echo)),
		"fertile": scripted(mcptest.Grandchild, mcptest.PIDFile(pids)),
	})
	second := serversFile(t, map[string]entry{"plain": scripted(mcptest.Echo), "safe": trusted(scripted(mcptest.Echo))})
	victim := startWorker(t, setup{nats: nats.url, servers: first})
	startWorker(t, setup{nats: nats.url, servers: second})
	d := startFrontDoor(t, setup{nats: nats.url, env: []string{quickStop}})
	d.waitServers(t, 2, "plain", "safe")
	d.waitServers(t, 1, "fertile")
	grandchildren, err := mcptest.ReadPIDs(pids)
	if err != nil {
		t.Fatal(err)
	}
	family := append(descendants(t, victim.pid()), grandchildren.Child, grandchildren.Session)
	if len(family) < 5 {
		t.Fatalf("expected servers and a reaper below the worker, found %v", family)
	}

	const lanes = 5
	plain := startLoad(t, lanes, func(lane, n int) error { return d.echo("plain", fmt.Sprint(lane, " ", n)) })
	safe := startLoad(t, lanes, func(lane, n int) error { return d.echo("safe", fmt.Sprint(lane, " ", n)) })
	plain.more(t, 100)
	safe.more(t, 100)
	victim.kill9(t)
	gone(t, soon, "the children and grandchildren of the worker", family)
	plain.more(t, 100)
	safe.more(t, 100)
	plain.end()
	safe.end()

	safe.none(t, "calls that are safe to repeat")
	if n := plain.failed.Load(); n > lanes {
		t.Errorf("%d calls failed, and only %d were under way at once", n, lanes)
	}
	for _, err := range plain.errors() {
		var r *refusal
		if !errors.As(err, &r) {
			t.Errorf("a call failed without a problem document: %v", err)
			continue
		}
		r.problem(t, 504, "outcome-unknown")
	}
	eventually(t, soon, "the dead worker leaves the list", func() error {
		if n := d.server(t, "plain").WorkerCount; n != 1 {
			return fmt.Errorf("there are %d workers", n)
		}
		return nil
	})
	// No worker has it now, but it exists, so a retry may succeed.
	if p := d.ask(t, "POST", toolPath("fertile", "echo"), `{"text":"x"}`).problem(t, 503, "unavailable"); !p.Retryable {
		t.Errorf("a call that did not start may be sent again: %+v", p)
	}
	if s := d.server(t, "fertile"); s.Connected || s.State != "error" || s.PID != 0 {
		t.Errorf("the server without a worker is shown as %+v", s)
	}
}

func TestGrandchildrenEndWithTheirServerAndWithCallyard(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	up := startUp(t, setup{servers: serversFile(t, map[string]entry{"fertile": scripted(mcptest.Grandchild, mcptest.PIDFile(pids))}), env: []string{quickStop}})
	up.waitServers(t, 1, "fertile")
	first, err := mcptest.ReadPIDs(pids)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(pids); err != nil {
		t.Fatal(err)
	}
	kill9(t, up.server(t, "fertile").PID)
	gone(t, soon, "the grandchildren of the killed server", []int{first.Child, first.Session})
	var second mcptest.PIDs
	eventually(t, soon, "the server is back", func() error {
		second, err = mcptest.ReadPIDs(pids)
		return err
	})
	up.stop(t)
	gone(t, soon, "the grandchildren after the stop", []int{second.Child, second.Session})
}
