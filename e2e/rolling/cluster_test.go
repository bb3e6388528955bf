package rolling

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callyard/callyard/e2e/proc"
)

// cluster is three NATS servers with three replicas of everything.
type cluster struct {
	nodes []*node
	http  *http.Client
}

// node is one of them.
type node struct {
	*proc.Process
	name    string
	address string // for clients
	monitor string
	config  string
}

// graceOfLameDuck is the time that a node waits between notifying its clients and
// closing their connections. The default is 10 s.
const graceOfLameDuck = "1s"

// startCluster starts three nodes and waits until their streams can be written.
// route, if not nil, returns the address at which node i reaches node j.
func startCluster(t testing.TB, ports []int, route func(i, j int) string) *cluster {
	t.Helper()
	c := &cluster{http: client(t)}
	at := func(i, k int) string { return fmt.Sprintf("127.0.0.1:%d", ports[3*i+k]) }
	if route == nil {
		route = func(_, j int) string { return at(j, 1) }
	}
	dir := t.TempDir()
	for i := range 3 {
		var routes []string
		for j := range 3 {
			if i != j {
				routes = append(routes, "nats://"+route(i, j))
			}
		}
		n := &node{name: fmt.Sprintf("nats-%d", i), address: at(i, 0), monitor: "http://" + at(i, 2)}
		n.config = filepath.Join(dir, n.name+".conf")
		// Addresses that nodes advertise must not bypass a route.
		write(t, n.config, fmt.Sprintf(`server_name: %s
listen: %q
http: %q
max_payload: 8MB
lame_duck_grace_period: %s
lame_duck_duration: 30s
jetstream { store_dir: %q }
cluster { name: callyard, listen: %q, advertise: "127.0.0.1:9", routes: [%s] }
`, n.name, n.address, at(i, 2), graceOfLameDuck, filepath.Join(dir, n.name), at(i, 1), strings.Join(routes, ", ")))
		c.nodes = append(c.nodes, n)
		c.start(t, i)
	}
	for _, n := range c.nodes {
		c.healthy(t, n)
	}
	return c
}

// portsOfCluster is the number of ports for [startCluster].
const portsOfCluster = 9

// start starts or restarts a node.
func (c *cluster) start(t testing.TB, i int) {
	t.Helper()
	n := c.nodes[i]
	n.Process = proc.Start(t, proc.Program{Name: n.name, Path: filepath.Join(programs.test, "nats-server"), Args: []string{"--config", n.config}})
}

// url returns the URLs of all nodes.
func (c *cluster) url() string {
	var all []string
	for _, n := range c.nodes {
		all = append(all, "nats://"+n.address)
	}
	return strings.Join(all, ",")
}

// healthyWithin limits the time in which a node must catch up. Elections take long if the
// nodes share two cores with other programs.
const healthyWithin = 4 * time.Minute

// healthy waits until a node has caught up with the others.
func (c *cluster) healthy(t testing.TB, n *node) {
	t.Helper()
	began := time.Now()
	defer func() { t.Logf("%s is healthy after %s", n.name, time.Since(began)) }()
	n.Eventually(t, healthyWithin, "being healthy", func() error {
		a, err := c.http.Get(n.monitor + "/healthz")
		if err != nil {
			return err
		}
		defer a.Body.Close()
		if text, _ := io.ReadAll(a.Body); a.StatusCode != http.StatusOK {
			return fmt.Errorf("/healthz answers %d: %.300s", a.StatusCode, text)
		}
		return nil
	})
}

// leads waits until the nodes agree on the leader of the cluster, and returns it.
func (c *cluster) leads(t testing.TB) (i int) {
	t.Helper()
	proc.Eventually(t, healthyWithin, "a node that leads", func() error {
		if i = c.leader(); i < 0 {
			return errors.New("there is none")
		}
		return nil
	})
	return i
}

// leader returns the current leader according to the nodes, or -1 if they do not agree.
func (c *cluster) leader() int {
	for _, n := range c.nodes {
		var s struct {
			Meta struct {
				Leader string `json:"leader"`
			} `json:"meta_cluster"`
		}
		a, err := c.http.Get(n.monitor + "/jsz")
		if err != nil {
			continue
		}
		err = json.NewDecoder(a.Body).Decode(&s)
		_ = a.Body.Close()
		if err != nil {
			continue
		}
		for i, other := range c.nodes {
			if other.name == s.Meta.Leader {
				return i
			}
		}
	}
	return -1
}

// retire stops a node like an operator: in lame duck mode, in which it transfers its
// leaderships and disconnects its clients one after the other, or at once.
func (c *cluster) retire(t testing.TB, i int, lameDuck bool) {
	t.Helper()
	signal := syscall.SIGTERM
	if lameDuck {
		signal = syscall.SIGUSR2
	}
	c.nodes[i].Signal(t, signal)
	c.nodes[i].Wait(t, 90*time.Second) // its exit code is not ours to check
}
