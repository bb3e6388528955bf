package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/mcptest"
)

// The servers of a fleet. Both write down each run; the tool of the second is
// registered as safe to repeat.
const (
	onceServer = "ledger"
	safeServer = "notes"
)

// fleet is the processes of a campaign.
type fleet struct {
	nats    *slot
	doors   []*slot
	workers []*slot
	disk    *disk // of NATS, where power is to be cut

	natsURL string
	urls    []string // of the doors
	look    *http.Client
}

// Programs are the folders with the programs of a fleet; see [Build].
type Programs struct {
	// Dir has frontdoor, worker, nats-server and scripted.
	Dir string
	// Unguarded has a front door that writes no intents.
	Unguarded string
}

// openFleet starts the processes of the campaign below dir and waits for them.
func openFleet(ctx context.Context, c *Campaign, dir string) (*fleet, error) {
	f := &fleet{look: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: time.Second}).DialContext}}}
	ports, err := freePorts(1 + c.Doors + c.Workers)
	if err != nil {
		return nil, err
	}
	if err := f.plan(ctx, c, dir, ports); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = f.nats.start(ctx)
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

// plan says how each process is started.
func (f *fleet) plan(ctx context.Context, c *Campaign, dir string, ports []int) (err error) {
	store := filepath.Join(dir, "nats")
	if c.needsDisk() {
		if f.disk, err = newDisk(ctx, dir); err != nil {
			return err
		}
	}
	servers, err := writeServers(c, dir)
	if err != nil {
		return err
	}
	address := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
	log := func(name string) string { return filepath.Join(dir, name+".log") }
	f.natsURL = "nats://" + address(ports[0])
	sync := "always"
	if c.Lax {
		sync = "2m"
	}
	f.nats = &slot{name: "nats", spawn: func() (*process, error) {
		if f.disk != nil {
			store = filepath.Join(f.disk.path(), "nats")
		}
		settings := fmt.Sprintf("listen: %q\nmax_payload: 8MB\njetstream { store_dir: %q, sync_interval: %s }\n", address(ports[0]), store, sync)
		file := filepath.Join(dir, "nats.conf")
		if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
			return nil, fmt.Errorf("writing the settings of nats-server: %w", err)
		}
		return launch(filepath.Join(c.Programs.Dir, "nats-server"), []string{"--config", file}, nil, log("nats"))
	}, ready: func(ctx context.Context) error { return greets(ctx, address(ports[0])) }}
	doorDir := c.Programs.Dir
	if c.Unguarded {
		doorDir = c.Programs.Unguarded
	}
	for i := range c.Doors {
		at := address(ports[1+i])
		name := fmt.Sprintf("frontdoor-%d", i)
		f.urls = append(f.urls, "http://"+at)
		f.doors = append(f.doors, &slot{name: name, spawn: func() (*process, error) {
			return launch(filepath.Join(doorDir, "frontdoor"), []string{"--nats", f.natsURL, "--listen", at, "--log-format", "json"}, nil, log(name))
		}, ready: func(ctx context.Context) error { return f.isReady(ctx, "http://"+at) }})
	}
	for i := range c.Workers {
		at := address(ports[1+c.Doors+i])
		name := fmt.Sprintf("worker-%d", i)
		f.workers = append(f.workers, &slot{name: name, spawn: func() (*process, error) {
			env := []string{"CALLYARD_WORKER_LISTEN=" + at, "CALLYARD_WORKER_NAME=" + name}
			return launch(filepath.Join(c.Programs.Dir, "worker"), []string{"--nats", f.natsURL, "--servers", servers, "--log-format", "json"}, env, log(name))
		}, ready: func(ctx context.Context) error { return f.isReady(ctx, "http://"+at) }})
	}
	return nil
}

func writeServers(c *Campaign, dir string) (string, error) {
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
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]entry{onceServer: once, safeServer: safe}})
	path := filepath.Join(dir, "servers.json")
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("writing the servers file: %w", err)
	}
	return path, nil
}

// freePorts returns ports of loopback that nobody listens on. They lie below those
// that the system gives to connections, so that a process finds its own again
// after it was away.
func freePorts(n int) ([]int, error) {
	const least, most = 12_000, 30_000
	var ports []int
	for range 1000 {
		if len(ports) == n {
			return ports, nil
		}
		port := least + rand.IntN(most-least)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer l.Close() // held until all are chosen, so that they differ
		ports = append(ports, port)
	}
	return nil, errors.New("there are not enough free ports on 127.0.0.1")
}

// greets says whether a NATS server greets at the address.
func greets(ctx context.Context, address string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
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

func (f *fleet) isReady(ctx context.Context, base string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", nil)
	if err != nil {
		return err
	}
	a, err := f.look.Do(r)
	if err != nil {
		return err
	}
	_ = a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz answers %d", a.StatusCode)
	}
	return nil
}

// held is what GET /servers/{id} says of who holds a server.
type held struct {
	Connected bool `json:"connected"`
	Tools     *int `json:"tools"`
	Workers   []struct {
		ID    string `json:"id"`
		State string `json:"initialization_state"`
		PID   int    `json:"pid"`
	} `json:"workers"`
}

// holders asks one front door who holds a server.
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

// awaitServers waits until every front door sees both servers ready on all workers.
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
	const grace = 40 * time.Second // more than any of them gives its calls
	_ = all(f.doors, func(s *slot) error { s.end(grace); return nil })
	_ = all(f.workers, func(s *slot) error { s.end(grace); return nil })
	f.nats.end(grace)
	f.look.CloseIdleConnections()
	if f.disk == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return f.disk.unmount(ctx)
}

// all does something with each slot at once.
func all(slots []*slot, do func(*slot) error) error {
	errs := make([]error, len(slots))
	var wait sync.WaitGroup
	for i, s := range slots {
		wait.Go(func() { errs[i] = do(s) })
	}
	wait.Wait()
	return errors.Join(errs...)
}
