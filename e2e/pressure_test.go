package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/mcptest"
)

func TestCallyardRecoversWhenNATSReturns(t *testing.T) {
	dir := t.TempDir()
	nats := startNATS(t, dir)
	port := nats.url[strings.LastIndexByte(nats.url, ':')+1:]
	w := startWorker(t, setup{nats: nats.url, servers: serversFile(t, map[string]entry{"server": scripted(mcptest.Echo)})})
	d := startFrontDoor(t, setup{nats: nats.url, env: []string{quickStop}})
	d.waitServers(t, 1, "server")
	pid := d.server(t, "server").PID

	nats.kill9(t)
	d.eventually(t, soon, "being red without NATS", func() error {
		if a := d.ask(t, "GET", "/readyz", ""); a.status != http.StatusServiceUnavailable || !strings.Contains(string(a.body), "NATS") {
			return fmt.Errorf("/readyz answers %d: %s", a.status, a.body)
		}
		return nil
	})
	if a := d.ask(t, "GET", "/livez", ""); a.status != http.StatusOK {
		t.Errorf("a front door without NATS is alive all the same: %d %s", a.status, a.body)
	}
	d.ask(t, "POST", toolPath("server", "echo"), `{"text":"x"}`, "Callyard-Timeout-Ms: 1000").problem(t, http.StatusServiceUnavailable, "unavailable")

	startNATSOn(t, dir, port)
	d.eventually(t, startWithin, "serving again", func() error { return d.echo("server", "back") })
	// Stored calls use a separate connection, which may take slightly longer.
	d.eventually(t, startWithin, "being ready again", func() error {
		if a := d.ask(t, "GET", "/readyz", ""); a.status != http.StatusOK {
			return fmt.Errorf("/readyz answers %d: %s", a.status, a.body)
		}
		return nil
	})
	if got := d.server(t, "server").PID; got != pid || !alive(pid) {
		t.Errorf("the server has process %d, it had %d: an outage of NATS is no reason to start it again", got, pid)
	}
	d.stop(t)
	w.stop(t)
}

func TestDisconnectedCallerReleasesItsSlot(t *testing.T) {
	up := startUp(t, setup{servers: serversFile(t, map[string]entry{"server": scripted(mcptest.Echo)}), env: []string{quickStop}})
	up.waitServers(t, 1, "server")
	effects := filepath.Join(t.TempDir(), "effects")
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		body := strings.NewReader(fmt.Sprintf(`{"path":%q,"id":"left","ms":600000}`, effects))
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, up.url+toolPath("server", "effect"), body)
		if err != nil {
			left <- err
			return
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := up.http.Do(r)
		if err == nil {
			err = resp.Body.Close()
		}
		left <- err
	}()
	hasEffect(t, effects, "left")
	if n := up.server(t, "server").InFlight; n != 1 {
		t.Errorf("%d calls are under way, want 1", n)
	}
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Fatalf("the caller left with %v", err)
	}
	up.eventually(t, soon, "having no call under way", func() error {
		if n := up.server(t, "server").InFlight; n != 0 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	if s := up.server(t, "server"); s.Workers[0].Restarts != 0 {
		t.Errorf("the server was started again for it: %+v", s)
	}
}

func TestCallsBeyondTheSlotsAreQueuedAndServed(t *testing.T) {
	servers := serversFile(t, map[string]entry{"narrow": scripted(mcptest.Echo)})
	up := startUp(t, setup{servers: servers, env: []string{quickStop, "CALLYARD_WORKER_IN_FLIGHT=4"}})
	up.waitServers(t, 1, "narrow")
	runCalls(100, 3000, func(n int) error { return up.echo("narrow", fmt.Sprint("call ", n)) }).none(t, "calls over four places")
}

func TestOverloadIsRefusedBeforeAnythingStarts(t *testing.T) {
	servers := serversFile(t, map[string]entry{"narrow": scripted(mcptest.Echo)})
	up := startUp(t, setup{servers: servers, env: []string{quickStop, "CALLYARD_WORKER_IN_FLIGHT=2", "CALLYARD_FRONT_DOOR_MAX_QUEUE=3"}})
	up.waitServers(t, 1, "narrow")
	effects := filepath.Join(t.TempDir(), "effects")
	const calls = 40
	l := runCalls(calls, calls, func(n int) error {
		a, err := up.tryCall("narrow", "effect", fmt.Sprintf(`{"path":%q,"id":"%d","ms":300}`, effects, n))
		if err == nil && a.status != http.StatusOK {
			err = &refusal{a}
		}
		return err
	})
	for _, err := range l.errors() {
		var r *refusal
		if !errors.As(err, &r) {
			t.Errorf("a call failed without a problem document: %v", err)
			continue
		}
		if p := r.problem(t, http.StatusServiceUnavailable, "unavailable"); !p.Retryable {
			t.Errorf("what did not start may be sent again: %s", r.body)
		}
	}
	ran, err := mcptest.ReadEffects(effects)
	if err != nil {
		t.Fatal(err)
	}
	if done := int(l.calls.Load() - l.failed.Load()); len(ran) != done || l.failed.Load() == 0 || done < 5 {
		t.Errorf("%d calls were answered and %d refused, and %d have had their effect", done, l.failed.Load(), len(ran))
	}
	if err := up.echo("narrow", "after the rush"); err != nil {
		t.Error(err)
	}
}
