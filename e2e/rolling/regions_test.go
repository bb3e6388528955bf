package rolling

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/e2e/proc"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// region is a NATS server, a front door and a worker, with the settings of
// deploy/nats for regions.
type region struct {
	*processFiles
	name         string
	door, worker *role
}

// startRegion starts the NATS server of a region. remotes are the regions that it connects to.
func startRegion(t testing.TB, name string, ports []int, remotes string) *region {
	t.Helper()
	from := filepath.Join(programs.root, "deploy", "nats")
	dir := t.TempDir()
	for _, file := range []string{"region.conf", "permissions.conf", "permissions-region.conf"} {
		text, err := os.ReadFile(filepath.Join(from, file))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, file), strings.NewReplacer(
			`"0.0.0.0:4222"`, fmt.Sprintf(`"127.0.0.1:%d"`, ports[0]),
			// Addresses that a server advertises must not bypass the wire.
			`"0.0.0.0:7422"`, fmt.Sprintf(`"127.0.0.1:%d", no_advertise: true`, ports[1]),
			`"0.0.0.0:8222"`, fmt.Sprintf(`"127.0.0.1:%d"`, ports[2]),
		).Replace(string(text)))
	}
	// proc removes variables with our prefix from the environment, except these.
	env := []string{"CALLYARD_NATS_NAME=nats-" + name, "CALLYARD_NATS_DOMAIN=" + name, "CALLYARD_NATS_STORE=" + filepath.Join(dir, "store"), "CALLYARD_NATS_REMOTES=" + remotes}
	for _, user := range []string{"frontdoor", "approver", "worker", "region", "operator", "system"} {
		env = append(env, fmt.Sprintf("CALLYARD_NATS_%s=%s", strings.ToUpper(user), user))
	}
	p := proc.Start(t, proc.Program{Name: "nats-" + name, Path: filepath.Join(programs.test, "nats-server"), Args: []string{"--config", filepath.Join(dir, "region.conf")}, Env: env})
	p.Says(t, `Server is ready`)
	provision(t, fmt.Sprintf("nats://127.0.0.1:%d", ports[0]))
	h := newProcessFiles(t, fmt.Sprintf("nats://127.0.0.1:%d", ports[0]), "")
	h.replicas, h.users = 1, true
	r := &region{processFiles: h, name: name}
	config := "region: " + name + "\n"
	r.worker = h.role(t, program{name: "worker", config: config, port: ports[3], env: []string{"CALLYARD_WORKER_NAME=worker-" + name}})
	r.door = h.role(t, program{name: "frontdoor", config: config, port: ports[4]})
	return r
}

// provision creates the streams of a NATS server with users, as its operator.
func provision(t testing.TB, url string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin(t, programs.now), "callyard"), "init", "--nats", url)
	cmd.Env = append(os.Environ(), "CALLYARD_NATS_USER=operator", "CALLYARD_NATS_PASSWORD=operator")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("callyard init: %v\n%s", err, out)
	}
}

// portsOfRegion is the number of ports for [startRegion].
const portsOfRegion = 5

// ranAt makes calls at the front door of a region and checks that all of them run at the
// worker of the region where. workers is the number of workers that the front door has.
func (r *region) ranAt(t testing.TB, what, where string, workers int) {
	t.Helper()
	// A worker that stands still for some seconds counts as gone, and calls run elsewhere until it is back.
	for tries := 3; ; tries-- {
		err := r.calls(what, where)
		if err == nil {
			return
		}
		if tries == 1 {
			t.Fatalf("%s: %v", what, err)
		}
		t.Logf("%s: %v", what, err)
		sees(t, r.door, workers)
	}
}

// calls makes calls, and returns an error unless all of them ran at the worker of the region where.
func (r *region) calls(what, where string) error {
	for n := range 10 {
		a, err := send(r.door.http, http.MethodPost, r.door.url+"/servers/"+plainServer+"/tools/effect", fmt.Sprintf(`{"path":%q,"id":"%s %d"}`, r.effects, what, n))
		if err != nil || a.status != http.StatusOK {
			return fmt.Errorf("call %d at %s: %w %w", n, r.name, a, err)
		}
		if worker := a.header.Get("Callyard-Worker"); !strings.HasPrefix(worker, "worker-"+where+"_") {
			return fmt.Errorf("call %d at %s ran at %s, want it at the worker of %s", n, r.name, worker, where)
		}
	}
	return nil
}

func TestCallsPreferTheirRegionAndFailOver(t *testing.T) {
	t.Parallel()
	ports := porttest.Ports(t, 2*portsOfRegion)
	east := startRegion(t, "east", ports[:portsOfRegion], "[]")
	way := openCuttablePath(t, fmt.Sprintf("127.0.0.1:%d", ports[1]))
	west := startRegion(t, "west", ports[portsOfRegion:], fmt.Sprintf(`[{url: "nats-leaf://region:region@%s", account: CALLYARD}]`, way.listener.Addr()))
	both := []*region{east, west}
	for _, r := range both {
		r.worker.up(t)
		r.door.up(t)
	}
	joined := func(workers int) {
		t.Helper()
		for _, r := range both {
			sees(t, r.door, workers)
		}
	}
	joined(2)
	for _, r := range both {
		r.ranAt(t, "near", r.name, 2)
	}

	// Without a worker, a region runs its calls in the other one.
	east.worker.Stop(t)
	joined(1)
	east.ranAt(t, "far", "west", 1)
	west.ranAt(t, "near beside it", "west", 1)
	east.worker.up(t)
	joined(2)
	east.ranAt(t, "back", "east", 2)

	// Stored calls of one region are not in the other, because streams do not cross.
	a, err := send(east.door.http, http.MethodPost, east.door.url+"/calls", fmt.Sprintf(`{"server":%q,"tool":"effect","arguments":{"path":%q,"id":"stored"}}`, plainServer, east.effects), "Idempotency-Key: one", "Prefer: respond-async")
	if err != nil || a.status != http.StatusAccepted {
		t.Fatalf("a stored call: %v %v", a, err)
	}
	path := a.header.Get("Location")
	east.door.Eventually(t, proc.Soon, "running a stored call", func() error {
		a, err := send(east.door.http, http.MethodGet, east.door.url+path+"?wait=5", "")
		var s struct {
			State string `json:"state"`
		}
		if err == nil && (json.Unmarshal(a.body, &s) != nil || s.State != "succeeded") {
			err = a
		}
		return err
	})
	if a, err := send(west.door.http, http.MethodGet, west.door.url+path, ""); err != nil || a.status != http.StatusNotFound {
		t.Errorf("the other region knows the stored call: %v %v", a, err)
	}

	// Partitioned from each other, each region continues alone.
	way.set(true)
	joined(1)
	for _, r := range both {
		r.ranAt(t, "alone", r.name, 1)
	}
	way.set(false)
	joined(2)
	for _, r := range both {
		r.ranAt(t, "together again", r.name, 2)
	}
}
