package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// The servers of a fleet. Both record each run; the tool of the second is
// registered as safe to repeat.
const (
	onceServer = "ledger"
	safeServer = "notes"
)

// fleet holds the processes of a campaign.
type fleet struct {
	nodes   []*slot // of NATS: one, or a cluster
	doors   []*slot
	workers []*slot
	disk    *disk // of the first NATS node, for power cuts and a full disk
	lan     *lan  // for network faults: each process is a separate host

	bad map[string]badServer // bad servers of the workers, in addition to the good ones

	urls []string         // of the doors
	at   map[string]*host // the hosts by address, for processes on the lan
	look *http.Client
}

// openFleet starts the processes of the campaign below dir and waits for them.
func openFleet(ctx context.Context, c *Campaign, dir string) (*fleet, error) {
	f := &fleet{at: map[string]*host{}}
	f.look = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: f.dial}}
	if err := f.plan(ctx, c, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("preparing the fleet: %w", err), f.close())
	}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	err := all(f.nodes, func(s *slot) error { return s.start(ctx) })
	if err == nil {
		err = all(append(f.doors[:len(f.doors):len(f.doors)], f.workers...), func(s *slot) error { return s.start(ctx) })
	}
	if err == nil {
		err = f.awaitServers(ctx, c.Workers)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the fleet: %w", err), f.close())
	}
	return f, nil
}

// startWithin limits the time to start a fleet.
const startWithin = 2 * time.Minute

// portsOfNode is the number of ports of a node: for clients, for other nodes, and for monitoring.
const portsOfNode = 3

// plan prepares the start of each process.
func (f *fleet) plan(ctx context.Context, c *Campaign, dir string) (err error) {
	nodes := max(c.Nodes, 1)
	ports, err := porttest.Free(portsOfNode*nodes + c.Doors + c.Workers)
	if err != nil {
		return err
	}
	if c.needsDisk() {
		if f.disk, err = newDisk(ctx, dir); err != nil {
			return err
		}
	}
	var patience []string
	if c.Bad {
		f.bad = badServers(dir)
		patience = []string{"CALLYARD_WORKER_START_TIMEOUT=2s"}
	}
	servers, err := f.writeServers(c, dir)
	if err != nil {
		return err
	}
	if c.needsLAN() {
		f.lan = newLAN(c.Seed)
	}
	place := func(name, program string, port int, ready func(context.Context, string) error, args, env []string) (*slot, error) {
		s := &slot{name: name, program: program, args: args, env: env, log: filepath.Join(dir, name+".log")}
		if f.lan != nil {
			if s.host, err = newHost(ctx, address{10, 77, 0, byte(len(f.slots()) + 1)}); err != nil {
				return nil, err
			}
			f.lan.plug(s.host.at, s.host.wire)
		}
		if c.needsClocks() {
			if s.clock, err = newClock(filepath.Join(dir, name+".clock")); err != nil {
				return nil, err
			}
			s.env = append(s.env, clockVariable+"="+s.clock.path)
		}
		s.at = loopback(port)
		f.at[s.at] = s.host
		s.ready = func(ctx context.Context) error { return ready(ctx, s.at) }
		return s, nil
	}
	for i := range nodes {
		ready := f.greets
		if nodes > 1 { // ready only when it has caught up with the cluster
			ready = func(ctx context.Context, _ string) error {
				return f.answers(ctx, loopback(ports[portsOfNode*i+2]), "/healthz")
			}
		}
		s, err := place(fmt.Sprintf("nats-%d", i), c.program("nats-server"), ports[portsOfNode*i], ready, nil, nil)
		if err != nil {
			return err
		}
		f.at[loopback(ports[portsOfNode*i+2])] = s.host
		f.nodes = append(f.nodes, s)
	}
	for i, s := range f.nodes {
		s.before = func() error { return f.configure(c, i, dir, ports) }
		s.args = []string{"--config", configOf(dir, i)}
	}
	var urls []string
	for i, s := range f.nodes {
		urls = append(urls, "nats://"+s.address(ports[portsOfNode*i]))
	}
	nats := strings.Join(urls, ",")
	for i := range c.Doors {
		at := loopback(ports[portsOfNode*nodes+i])
		program := c.program("frontdoor")
		if c.Unguarded {
			program = filepath.Join(c.Programs.Unguarded, "frontdoor")
		}
		s, err := place(fmt.Sprintf("frontdoor-%d", i), program, ports[portsOfNode*nodes+i], f.isReady,
			[]string{"--nats", nats, "--listen", at, "--log-format", "json"}, []string{fmt.Sprint("CALLYARD_NATS_REPLICAS=", nodes)})
		if err != nil {
			return err
		}
		f.urls, f.doors = append(f.urls, "http://"+at), append(f.doors, s)
	}
	for i := range c.Workers {
		port, name := ports[portsOfNode*nodes+c.Doors+i], fmt.Sprintf("worker-%d", i)
		s, err := place(name, c.program("worker"), port, f.isReady,
			[]string{"--nats", nats, "--servers", servers, "--log-format", "json"}, append([]string{"CALLYARD_WORKER_LISTEN=" + loopback(port), "CALLYARD_WORKER_NAME=" + name}, patience...))
		if err != nil {
			return err
		}
		f.workers = append(f.workers, s)
	}
	return nil
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

func configOf(dir string, node int) string {
	return filepath.Join(dir, fmt.Sprintf("nats-%d.conf", node))
}

// configure writes the configuration of a NATS node, whose disk may have moved.
func (f *fleet) configure(c *Campaign, node int, dir string, ports []int) error {
	store, sync := filepath.Join(dir, fmt.Sprintf("nats-%d", node)), "always"
	if f.disk != nil && node == 0 {
		store = filepath.Join(f.disk.path(), "nats")
	}
	if c.Lax {
		sync = "2m"
	}
	listen := "127.0.0.1"
	if f.lan != nil {
		listen = "0.0.0.0"
	}
	settings := fmt.Sprintf("server_name: nats-%d\nlisten: \"%s:%d\"\nmax_payload: 8MB\njetstream { store_dir: %q, sync_interval: %s }\n", node, listen, ports[portsOfNode*node], store, sync)
	if len(f.nodes) > 1 {
		var routes []string
		for i, s := range f.nodes {
			routes = append(routes, fmt.Sprintf("%q", "nats://"+s.address(ports[portsOfNode*i+1])))
		}
		settings += fmt.Sprintf("http: %q\n", loopback(ports[portsOfNode*node+2]))
		settings += fmt.Sprintf("cluster { name: chaos, listen: \"%s:%d\", routes: [%s] }\n", listen, ports[portsOfNode*node+1], strings.Join(routes, ", "))
	}
	if err := os.WriteFile(configOf(dir, node), []byte(settings), 0o600); err != nil {
		return fmt.Errorf("writing the settings of nats-server: %w", err)
	}
	return nil
}

// dial connects to a process. Processes on the lan are reached from inside it,
// so that network faults affect only the fleet and not the harness.
func (f *fleet) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	d := net.Dialer{Timeout: time.Second}
	err = f.at[address].inside(func() error {
		conn, err = d.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

func (f *fleet) writeServers(c *Campaign, dir string) (string, error) {
	type entry struct {
		Command   string            `json:"command"`
		Args      []string          `json:"args"`
		Env       map[string]string `json:"env"`
		SafeTools []string          `json:"safeTools,omitempty"`
	}
	program := filepath.Join(c.Programs.Dir, "scripted")
	once := entry{Command: program, Args: []string{mcptest.Echo}, Env: mcptest.Env(mcptest.Echo)}
	safe := once
	safe.SafeTools = []string{"effect"}
	entries := map[string]entry{onceServer: once, safeServer: safe}
	for name, bad := range f.bad {
		entries[name] = entry{Command: program, Args: []string{bad.mode}, Env: bad.environ()}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": entries})
	path := filepath.Join(dir, "servers.json")
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("writing the servers file: %w", err)
	}
	return path, nil
}

// greets returns an error unless a NATS server sends its greeting at the address.
func (f *fleet) greets(ctx context.Context, address string) error {
	conn, err := f.dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if until, ok := ctx.Deadline(); ok {
		if err := conn.SetReadDeadline(until); err != nil {
			return err
		}
	}
	_, err = conn.Read(make([]byte, 4))
	return err
}

func (f *fleet) isReady(ctx context.Context, address string) error {
	return f.answers(ctx, address, "/readyz")
}

// answers returns an error unless a probe succeeds with 200.
func (f *fleet) answers(ctx context.Context, address, path string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return err
	}
	a, err := f.look.Do(r)
	if err != nil {
		return err
	}
	_ = a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %d", path, a.StatusCode)
	}
	return nil
}

// held is the part of GET /servers/{id} that lists the holders of a server.
type held struct {
	Connected bool `json:"connected"`
	Tools     *int `json:"tools"`
	Workers   []struct {
		ID    string `json:"id"`
		State string `json:"initialization_state"`
		PID   int    `json:"pid"`
	} `json:"workers"`
}

// holders asks one front door for the holders of a server.
func (f *fleet) holders(ctx context.Context, door int, server string) (h held, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.urls[door]+"/servers/"+server, nil)
	if err != nil {
		return h, err
	}
	a, err := f.look.Do(r)
	if err != nil {
		return h, err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return h, fmt.Errorf("GET /servers/%s answers %d", server, a.StatusCode)
	}
	return h, json.NewDecoder(a.Body).Decode(&h)
}

// awaitServers waits until every front door reports both servers ready on all workers.
func (f *fleet) awaitServers(ctx context.Context, workers int) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for door := range f.doors {
		for _, server := range []string{onceServer, safeServer} {
			for {
				h, err := f.holders(ctx, door, server)
				if err == nil && h.Connected && h.Tools != nil && len(h.Workers) == workers {
					break
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
					return fmt.Errorf("front door %d does not see %s on %d workers: %w", door, server, workers, errors.Join(ctx.Err(), err))
				}
			}
		}
	}
	return nil
}

// close ends every process.
func (f *fleet) close() error {
	const grace = 40 * time.Second // longer than the drain time of any process
	if f.lan != nil {
		f.heal()
	}
	for _, slots := range [][]*slot{f.doors, f.workers, f.nodes} {
		_ = all(slots, func(s *slot) error { s.end(grace); return nil })
	}
	f.look.CloseIdleConnections()
	var errs []error
	if f.lan != nil {
		errs = append(errs, f.lan.close())
	}
	for _, s := range f.slots() {
		if s.host != nil {
			errs = append(errs, s.host.close())
		}
		if s.clock != nil {
			errs = append(errs, s.clock.close())
		}
	}
	if f.disk != nil {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		errs = append(errs, f.disk.unmount(ctx))
	}
	return errors.Join(errs...)
}

// slots returns all processes.
func (f *fleet) slots() []*slot { return slices.Concat(f.nodes, f.doors, f.workers) }

// heal reconnects every wire.
func (f *fleet) heal() {
	f.lan.setAll(path{})
	for _, a := range f.slots() {
		for _, b := range f.slots() {
			f.lan.set(a.host.at, b.host.at, path{})
		}
	}
}

// all runs do for all slots concurrently.
func all(slots []*slot, do func(*slot) error) error {
	errs := make([]error, len(slots))
	var wait sync.WaitGroup
	for i, s := range slots {
		wait.Go(func() { errs[i] = do(s) })
	}
	wait.Wait()
	return errors.Join(errs...)
}
