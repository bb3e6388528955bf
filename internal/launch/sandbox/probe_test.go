package sandbox

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// attempts are what the prober tries. Each has to fail in a sandbox.
var attempts = []string{
	"interfaces", "route-public", "route-cloud", "host-gateway", "raw-socket", "packet-socket", "alg-socket", "vsock", "rxrpc-socket",
	"write-root", "write-hosts", "write-own", "write-kernel", "write-cgroup", "shared-memory", "exec-tmp", "fill-disk", "many-files",
	"root-user", "capabilities", "new-rights", "bounding-set", "mount", "user-namespace", "mknod", "chown", "hostname", "clock",
	"ptrace", "io-uring", "userfaultfd", "bpf", "perf", "keyring", "kernel-module", "engine-socket", "devices", "kernel-memory",
	"other-processes", "fork-bomb",
	"chroot", // where it works nothing works after it
}

// hostListener listens on the host for whoever gets out.
func hostListener(t *testing.T) (address string) {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	// The address of the host in the network that stock containers get.
	bridge, err := net.InterfaceByName("docker0")
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := bridge.Addrs()
	if err != nil || len(addresses) == 0 {
		t.Fatalf("docker0 has the addresses %v, %v", addresses, err)
	}
	gateway, _, _ := strings.Cut(addresses[0].String(), "/")
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return net.JoinHostPort(gateway, port)
}

func TestSandboxBlocksEscapesPossibleInAStockContainer(t *testing.T) {
	e := engine(t)
	args := map[string]string{"address": hostListener(t)}
	sandboxed := opened(t, start(t, e, spec(t, e)))
	stock := opened(t, plainContainer(t, e))
	var through []string
	for _, name := range attempts {
		plain, err := stock.tool(name, args)
		if err != nil {
			t.Fatalf("%s in a stock container: %v", name, err)
		}
		held, err := sandboxed.tool(name, args)
		if err != nil {
			t.Fatalf("%s in a sandbox: %v", name, err)
		}
		t.Logf("%-16s sandbox: %-60.60s stock: %.60s", name, held, plain)
		if !strings.HasPrefix(held, "blocked: ") {
			t.Errorf("%s got out of the sandbox: %s", name, held)
		}
		if strings.HasPrefix(plain, "through: ") {
			through = append(through, name)
		}
	}
	// A probe that never succeeds anywhere shows nothing.
	t.Logf("%d of %d get out of a stock container: %v", len(through), len(attempts), through)
	for _, name := range []string{"interfaces", "host-gateway", "raw-socket", "write-root", "exec-tmp", "fill-disk", "root-user", "capabilities", "bounding-set", "mknod", "fork-bomb"} {
		if !slices.Contains(through, name) {
			t.Errorf("%s did not even get out of a stock container, so that the probe proves nothing", name)
		}
	}
}

// plainContainer is one as an engine makes it when nobody asks for more.
func plainContainer(t *testing.T, e *Engine) *Container {
	t.Helper()
	s := spec(t, e)
	s.host = container.HostConfig{AutoRemove: true, Resources: container.Resources{PidsLimit: new(int64)}}
	s.user = "0"
	c, err := e.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop(0) })
	return c
}

func TestSandboxHasOnlyItsOwnEnvironment(t *testing.T) {
	t.Setenv("HOST_SECRET", "do-not-show")
	e := engine(t)
	k := opened(t, start(t, e, spec(t, e, func(c *Config) { c.Env = map[string]string{"API_KEY": "for the server"} })))
	got, err := k.tool("env", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := "API_KEY=for the server\nHOME=/tmp\nHOSTNAME=sandbox\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	if got != want {
		t.Errorf("the environment is\n%s\nwant\n%s", got, want)
	}
}

func TestResourceBombsDoNotAffectOtherSandboxes(t *testing.T) {
	e := engine(t)
	neighbour := opened(t, start(t, e, spec(t, e)))
	answers := func(what string) {
		t.Helper()
		began := time.Now()
		if got, err := neighbour.tool("echo", map[string]string{"text": what}); err != nil || got != what {
			t.Errorf("the neighbour of a %s bomb answered %q, %v", what, got, err)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("the neighbour of a %s bomb took %v", what, took)
		}
	}

	memory := start(t, e, spec(t, e))
	k := opened(t, memory)
	if text, err := k.tool("memory-bomb", nil); err == nil {
		t.Errorf("a memory bomb came to its end: %s", text)
	}
	if how := ended(t, memory); !strings.Contains(how, "128 MiB of memory") {
		t.Errorf("the memory bomb %s", how)
	}
	answers("memory")

	processes := start(t, e, spec(t, e))
	k = opened(t, processes)
	gone := make(chan error, 1)
	go func() { _, err := k.tool("processes-bomb", nil); gone <- err }()
	for range 20 {
		answers("process")
	}
	processes.Limit(time.Now().Add(500 * time.Millisecond))
	ended(t, processes)
	if err := <-gone; err == nil {
		t.Error("a process bomb came to its end")
	}
	answers("process")

	k = opened(t, start(t, e, spec(t, e)))
	text, err := k.tool("fill-disk", nil)
	if err != nil || !strings.HasPrefix(text, "blocked: stopped after 1") {
		t.Errorf("a disk bomb: %q, %v", text, err)
	}
	answers("disk")

	text, err = k.tool("cpu-bomb", nil)
	used, parseErr := time.ParseDuration(text)
	if err != nil || parseErr != nil || used > 1500*time.Millisecond {
		t.Errorf("two threads got %s of CPU time in 2 s under a limit of half a core (%v)", text, err)
	}
	t.Logf("CPU time in 2 s: %s", text)
	answers("CPU")
}

func TestEachSandboxHasItsOwnUser(t *testing.T) {
	e := engine(t)
	seen := map[string]bool{}
	for range 3 {
		c := start(t, e, spec(t, e))
		got, err := asker(t).ContainerInspect(context.Background(), c.ID(), client.ContainerInspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		user := got.Container.Config.User
		if seen[user] || user == "" || strings.HasPrefix(user, "0") {
			t.Errorf("the user %q is root or has another sandbox", user)
		}
		seen[user] = true
	}
}

// An image may ask for volumes, a user and a health check of its own.
func TestAnImageCannotWidenTheSandbox(t *testing.T) {
	e := engine(t)
	name := fmt.Sprintf("callyard-sandbox-test-greedy:%d", os.Getpid())
	ask := asker(t)
	id, err := imageOf(t.Context(), ask, proberFile(), name, "VOLUME /data", "USER 0", "EXPOSE 80")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := ask.ImageRemove(context.Background(), id, client.ImageRemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
	c := start(t, e, spec(t, e, func(c *Config) { c.Image = name }))
	k := opened(t, c)
	for _, attempt := range []string{"root-user", "write-root", "interfaces"} {
		if got, err := k.tool(attempt, nil); err != nil || !strings.HasPrefix(got, "blocked") {
			t.Errorf("%s: %q, %v", attempt, got, err)
		}
	}
	checkAlone(t, ask, c.ID())
}

// checkAlone checks that a container uses no volume and no network of the engine, so
// that it leaves neither behind. It asks for this container alone: other tests make
// their own on the same engine meanwhile.
func checkAlone(t testing.TB, c *client.Client, id string) {
	t.Helper()
	got, err := c.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
	if err != nil {
		t.Error(err)
		return
	}
	for _, m := range got.Container.Mounts {
		if m.Type != "tmpfs" {
			t.Errorf("there is a mount of type %s at %s", m.Type, m.Destination)
		}
	}
	for name := range got.Container.NetworkSettings.Networks {
		if name != "none" {
			t.Errorf("the container is in the network %s", name)
		}
	}
}
