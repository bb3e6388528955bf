package sandbox

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moby/moby/client"
)

// site is a server on this machine that says its name, and its port.
func site(t *testing.T, says string) (port string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, says+" for "+r.Host+"\n")
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// engineWithForwarder returns an engine with a forwarder, and the decisions that were made.
func engineWithForwarder(t *testing.T) (e *Engine, allowed, refused *atomic.Int64) {
	t.Helper()
	allowed, refused = new(atomic.Int64), new(atomic.Int64)
	forwarder := forwarderImage.made(t, "sandbox-forwarder", "callyard-sandbox-forwarder-test")
	return engine(t, func(o *Options) {
		o.Forwarder = forwarder
		o.Egress = func(server string, ok bool) {
			if ok {
				allowed.Add(1)
			} else {
				refused.Add(1)
			}
		}
	}), allowed, refused
}

func TestSandboxReachesOnlyListedDestinations(t *testing.T) {
	e, allowed, refused := engineWithForwarder(t)
	listed, other, inner := site(t, "listed"), site(t, "other"), site(t, "inner")
	gateway := hostListener(t)
	c := start(t, e, spec(t, e, func(c *Config) {
		c.Egress = []string{"localhost:" + listed, "localhost:" + inner}
		c.Allow = []string{"private:localhost:" + listed}
	}))
	k := opened(t, c)
	ask := func(tool string, args map[string]string) string {
		t.Helper()
		got, err := k.tool(tool, args)
		if err != nil {
			t.Fatalf("%s %v: %v; stderr %q", tool, args, err, c.StderrTail())
		}
		return got
	}
	if got := ask("fetch", map[string]string{"url": "http://localhost:" + listed + "/"}); !strings.HasPrefix(got, "200 listed for localhost") {
		t.Errorf("a place of the list answers %q", got)
	}
	if got := ask("connect", map[string]string{"address": "localhost:" + listed, "send": "GET / HTTP/1.0\r\n\r\n"}); !strings.Contains(got, "200 Connection established HTTP/1.") {
		t.Errorf("CONNECT to a place of the list answers %q", got)
	}
	if got := allowed.Load(); got < 2 {
		t.Errorf("%d connections were counted", got)
	}

	before := refused.Load()
	places := []string{
		"localhost:" + other, "localhost.:" + other, "127.0.0.1:" + listed, "[::1]:" + listed, "2130706433:" + listed, "0x7f.1:" + listed, // another way to say it
		"localhost:" + inner, // on the list, but its address is inner
		gateway, "169.254.169.254:80", "metadata.google.internal:80", "192.0.2.1:80", "example.com:443", "secret-data.tunnel.example.com:53",
	}
	for _, place := range places {
		if got := ask("connect", map[string]string{"address": place}); !strings.HasPrefix(got, "403 ") {
			t.Errorf("CONNECT %s answers %q", place, got)
		}
		if got := ask("fetch", map[string]string{"url": "http://" + place + "/"}); !strings.HasPrefix(got, "403 ") && !strings.HasPrefix(got, "failed: ") {
			t.Errorf("GET http://%s/ answers %q", place, got)
		}
	}
	if got := refused.Load() - before; got < int64(len(places)) {
		t.Errorf("%d refusals were counted of more than %d", got, len(places))
	}
	for _, bad := range []string{"/", "https://localhost:" + listed + "/", "file:///etc/passwd"} {
		if got := ask("fetch", map[string]string{"url": bad}); strings.HasPrefix(got, "200") {
			t.Errorf("%s answers %q", bad, got)
		}
	}
	host, _, _ := net.SplitHostPort(gateway)
	for _, name := range []string{"localhost.example", "one.dns.google"} {
		if got := ask("resolve", map[string]string{"name": name, "address": net.JoinHostPort(host, "53")}); !strings.HasPrefix(got, "blocked: ") {
			t.Errorf("looking %s up: %s", name, got)
		}
	}
	// Besides the proxy it is a sandbox like any other.
	for _, name := range attempts {
		if got := ask(name, map[string]string{"address": gateway}); !strings.HasPrefix(got, "blocked: ") {
			t.Errorf("%s got out of the sandbox: %s", name, got)
		}
	}
}

func TestEachSandboxHasItsOwnEgress(t *testing.T) {
	e, _, _ := engineWithForwarder(t)
	port := site(t, "listed")
	s := spec(t, e, func(c *Config) {
		c.Egress, c.Allow = []string{"127.0.0.1:" + port}, []string{"private:127.0.0.1:" + port}
	})
	ask := asker(t)
	seen := map[string]bool{}
	var last *Container
	for range 2 {
		last = start(t, e, s)
		got, err := ask.ContainerInspect(t.Context(), last.ID(), client.ContainerInspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		network := string(got.Container.HostConfig.NetworkMode)
		if !strings.HasPrefix(network, "container:") || seen[network] {
			t.Errorf("the network is %s", network)
		}
		seen[network] = true
	}
	k := opened(t, last)
	fetched := func() string {
		got, err := k.tool("fetch", map[string]string{"url": "http://127.0.0.1:" + port})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := fetched(); !strings.HasPrefix(got, "200 ") {
		t.Errorf("it answers %q", got)
	}
	// A forwarder that dies takes the egress with it, and nothing opens instead.
	forwarder := strings.TrimPrefix(inspectNetwork(t, ask, last), "container:")
	if _, err := ask.ContainerKill(t.Context(), forwarder, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
		t.Fatal(err)
	}
	<-last.way.container.Done()
	if got := fetched(); !strings.HasPrefix(got, "failed: ") {
		t.Errorf("without its forwarder it answers %q", got)
	}
	if got, err := k.tool("echo", map[string]string{"text": "still here"}); err != nil || got != "still here" {
		t.Errorf("without its forwarder the sandbox says %q, %v", got, err)
	}
	last.Stop(0)
	if left := owned(t, e.o.Owner); len(left) != 2 {
		t.Errorf("of two sandboxes one was stopped, and there are %d containers", len(left))
	}
}

func inspectNetwork(t *testing.T, ask *client.Client, c *Container) string {
	t.Helper()
	got, err := ask.ContainerInspect(t.Context(), c.ID(), client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(got.Container.HostConfig.NetworkMode)
}

func TestWarmSandboxHasEgressAndIsRemovedAfterUse(t *testing.T) {
	e, _, _ := engineWithForwarder(t)
	port := site(t, "listed")
	p := pool(t, e, spec(t, e, func(c *Config) {
		c.Egress, c.Allow, c.Pool = []string{"localhost:" + port}, []string{"private:localhost:" + port}, 1
	}))
	for i := range 3 {
		u, err := p.Take(t.Context(), fmt.Sprintf("caller %d", i), time.Now().Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := u.Session.tool("fetch", map[string]string{"url": "http://localhost:" + port}); err != nil || !strings.HasPrefix(got, "200 ") {
			t.Errorf("use %d: %q, %v", i, got, err)
		}
		u.Release()
	}
	p.Close()
	if left := owned(t, e.o.Owner); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestEgressWithoutTheForwarderImageIsRefused(t *testing.T) {
	e := engine(t, func(o *Options) { o.Forwarder = "callyard-test-missing-forwarder:at-all" })
	s, err := Resolve("s", Config{Image: prober(t), Egress: []string{"example.com:443"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Pin(t.Context(), s); err == nil || !strings.Contains(err.Error(), "build.sh egress-forwarder") {
		t.Errorf("it is pinned with %v", err)
	}
}
