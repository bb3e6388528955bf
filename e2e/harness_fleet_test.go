package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// entry is a server in the servers file.
type entry struct {
	Command          string            `json:"command,omitempty"`
	Args             []string          `json:"args,omitempty"`
	Env              map[string]string `json:"env,omitempty"`
	RiskLevel        int               `json:"riskLevel,omitempty"`
	Labels           map[string]string `json:"labels,omitempty"`
	TrustAnnotations bool              `json:"trustAnnotations,omitempty"`
	Sessions         int               `json:"sessions,omitempty"`
	InFlight         int               `json:"inFlight,omitempty"`
	Docker           map[string]any    `json:"docker,omitempty"`
	Asks             bool              `json:"asks,omitempty"`
	Type             string            `json:"type,omitempty"`
	URL              string            `json:"url,omitempty"`
	Pin              string            `json:"pin,omitempty"`
}

// scripted returns a scripted server of package mcptest.
func scripted(mode string, opts ...mcptest.Option) entry {
	return entry{Command: filepath.Join(programs.test, "scripted-server"), Args: []string{mode}, Env: mcptest.Env(mode, opts...)}
}

// fromNPM returns one of the installed npm servers.
func fromNPM(name string, args ...string) entry {
	index := filepath.Join(programs.node, "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	return entry{Command: "node", Args: append([]string{index}, args...)}
}

// trusted returns the entry with trusted annotations, so that its read-only tools
// are safe to repeat.
func trusted(e entry) entry {
	e.TrustAnnotations = true
	return e
}

// serversFile writes a servers file and returns its path.
func serversFile(t testing.TB, servers map[string]entry) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mcp.json")
	write(t, path, string(text))
	return path
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// quickStop saves tests the second that a front door gives load balancers to
// notice that it is shutting down. Tests of stopping do not use it.
const quickStop = "CALLYARD_FRONT_DOOR_DRAIN_DELAY=1ms"

// setup configures how a program of Callyard is started. The zero value is the way of a new
// user, except for the port.
type setup struct {
	servers string   // the servers file
	data    string   // the data folder; if empty, a new one
	nats    string   // the NATS server, for the programs that need one
	listen  string   // if empty, 127.0.0.1:0
	config  string   // text of a configuration file
	env     []string // additional environment variables
	flags   []string
	dir     string // the working folder; if empty, a new one
	bin     string // the folder of the program; if empty, that of this run
	anyPort bool   // omit --listen
}

func (s setup) program(t testing.TB, name string) program {
	t.Helper()
	p := program{name: name, env: s.env, dir: s.dir}
	from := s.bin
	if from == "" {
		from = bin(t)
	}
	p.path = filepath.Join(from, name)
	if p.dir == "" {
		p.dir = t.TempDir()
	}
	if name == "callyard" {
		p.args = append(p.args, "up")
	}
	if name != "worker" && !s.anyPort {
		listen := s.listen
		if listen == "" {
			listen = porttest.Address(t) // an address that it can reuse
		}
		flag := "--listen"
		if name == "approver" {
			flag = "--approver-listen"
		}
		p.args = append(p.args, flag, listen)
	}
	flag := func(name, value string) {
		if value != "" {
			p.args = append(p.args, name, value)
		}
	}
	flag("--servers", s.servers)
	flag("--data", s.data)
	flag("--nats", s.nats)
	if s.config != "" {
		path := filepath.Join(t.TempDir(), "callyard.yaml")
		write(t, path, s.config)
		flag("--config", path)
	}
	p.args = append(p.args, s.flags...)
	return p
}

// startUp starts `callyard up` and waits until it accepts calls.
func startUp(t testing.TB, s setup) *door {
	t.Helper()
	d := &door{process: start(t, s.program(t, "callyard"))}
	d.open(t, d.says(t, `REST API\s+(http://\S+)`)[1])
	return d
}

// startFrontDoor starts a front door and waits until it accepts calls.
func startFrontDoor(t testing.TB, s setup) *door {
	t.Helper()
	d := &door{process: start(t, s.program(t, "frontdoor"))}
	d.open(t, d.says(t, `front door is open.*"url":"(http://[^"]+)"`)[1])
	return d
}

// workerProcess is a worker and its name in the fleet.
type workerProcess struct {
	*process
	id string
}

// startWorker starts a worker and waits until it is on the bus. Its servers may
// still be starting.
func startWorker(t testing.TB, s setup) *workerProcess {
	t.Helper()
	w := &workerProcess{process: start(t, s.program(t, "worker"))}
	w.id = w.says(t, `worker is up.*"worker":"([^"]+)"`)[1]
	return w
}

// natsProcess is a nats-server with JetStream.
type natsProcess struct {
	*process
	url string
}

// startNATS starts a nats-server with default settings. dir holds its
// streams.
func startNATS(t testing.TB, dir string) *natsProcess {
	return startNATSOn(t, dir, fmt.Sprint(porttest.Port(t)))
}

// startNATSOn is startNATS on a port.
func startNATSOn(t testing.TB, dir, port string) *natsProcess {
	t.Helper()
	n := &natsProcess{process: start(t, program{
		path: filepath.Join(programs.test, "nats-server"), args: []string{"-a", "127.0.0.1", "-p", port, "-js", "-sd", dir},
	})}
	n.url = "nats://" + n.says(t, `Listening for client connections on (127\.0\.0\.1:\d+)`)[1]
	n.says(t, `Server is ready`)
	return n
}

// serverItem is the part of GET /servers that the tests read.
type serverItem struct {
	ID          string `json:"id"`
	Connected   bool   `json:"connected"`
	PID         int    `json:"pid"`
	State       string `json:"initialization_state"`
	Tools       *int   `json:"tools"`
	WorkerCount int    `json:"worker_count"`
	InFlight    int    `json:"in_flight"`
	Protocol    string `json:"protocol_version"`
	Error       string `json:"error"`
	StderrTail  string `json:"stderr_tail"`
	InDocker    bool   `json:"running_in_docker"`
	Sandbox     *struct {
		Ready bool   `json:"ready"`
		Error string `json:"error"`
	} `json:"sandbox"`
	Workers []struct {
		ID       string `json:"id"`
		State    string `json:"initialization_state"`
		PID      int    `json:"pid"`
		Sessions int    `json:"sessions"`
		Restarts int    `json:"restarts"`
		Draining bool   `json:"draining"`
	} `json:"workers"`
}

// server returns one server.
func (d *door) server(t testing.TB, id string) serverItem {
	t.Helper()
	var item serverItem
	d.read(t, "/servers/"+id, &item)
	return item
}

// servers returns all servers by ID.
func (d *door) servers(t testing.TB) map[string]serverItem {
	t.Helper()
	var list struct {
		Servers []serverItem `json:"servers"`
	}
	d.read(t, "/servers", &list)
	found := map[string]serverItem{}
	for _, s := range list.Servers {
		found[s.ID] = s
	}
	return found
}

// waitServers waits until each of the servers is ready on that number of live workers
// and its tools are known.
func (d *door) waitServers(t testing.TB, workers int, ids ...string) {
	t.Helper()
	d.eventually(t, startWithin, "having "+strings.Join(ids, ", ")+" ready", func() error {
		servers := d.servers(t)
		for _, id := range ids {
			s := servers[id]
			ready := 0
			for _, w := range s.Workers {
				if w.State == "initialized" && !w.Draining {
					ready++
				}
			}
			if !s.Connected || s.Tools == nil || ready != workers {
				return fmt.Errorf("server %s is %q on %d of %d workers: %s", id, s.State, ready, workers, s.Error)
			}
		}
		return nil
	})
}

// keys returns the keys of a map, sorted.
func keys[V any](m map[string]V) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}
