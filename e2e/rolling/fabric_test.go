package rolling

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/callyard/callyard/e2e/proc"
	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/internal/warrant"
)

// The servers of a fabric. All have the tool effect, which writes a line
// for each run. One is not safe to repeat, one is, one needs its caller's confirmation, and one
// needs an approver.
const (
	plainServer   = "plain"
	safeServer    = "safe"
	callersServer = "pay"
	peoplesServer = "grant"
)

const policyText = `
rules:
  - name: people
    match: {server: ` + peoplesServer + `, tool: effect}
    approval: {groups: [ops], expires: 20m}
`

// processFiles is the shared set-up of the processes of a fabric.
type processFiles struct {
	nats  string // addresses
	redis string // section of the configuration, or none
	// replicas is the number of replicas of each stream.
	replicas int
	users    bool // the roles have NATS users, whose passwords are their names

	effects string // the file in which each run writes a line
	policy  string
	servers string
	keys    struct{ callers, callersPublic, people, peoplePublic string }
}

// newProcessFiles writes the files of the processes.
func newProcessFiles(t testing.TB, nats, redis string) *processFiles {
	t.Helper()
	dir := t.TempDir()
	h := &processFiles{nats: nats, redis: redis, replicas: 3, effects: filepath.Join(dir, "effects"), policy: filepath.Join(dir, "policy.yaml"), servers: filepath.Join(dir, "servers.json")}
	write(t, h.policy, policyText)
	type entry struct {
		Command   string            `json:"command"`
		Args      []string          `json:"args"`
		Env       map[string]string `json:"env"`
		Risk      int               `json:"riskLevel,omitempty"`
		SafeTools []string          `json:"safeTools,omitempty"`
	}
	one := entry{Risk: 1, Command: filepath.Join(programs.test, "scripted-server"), Args: []string{mcptest.Echo}, Env: mcptest.Env(mcptest.Echo)}
	safe, risky := one, one
	safe.SafeTools, risky.Risk = []string{"effect"}, 2
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]entry{plainServer: one, safeServer: safe, callersServer: risky, peoplesServer: risky}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, h.servers, string(text))
	k := &h.keys
	k.callers, k.callersPublic = filepath.Join(dir, "frontdoor.pem"), filepath.Join(dir, "frontdoor.pub.pem")
	k.people, k.peoplePublic = filepath.Join(dir, "approver.pem"), filepath.Join(dir, "approver.pub.pem")
	for private, public := range map[string]string{k.callers: k.callersPublic, k.people: k.peoplePublic} {
		if err := warrant.Write(warrant.Generate(), private, public); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// role is a process of the fabric that can be restarted at the same address.
type role struct {
	*proc.Process
	url   string // "" for a worker, whose readiness is not polled
	spawn func(t testing.TB) *proc.Process
	http  *http.Client
}

// upWithin limits the time until a role is ready, and upTries the number of starts: a role
// that cannot open its storage exits, and its supervisor restarts it.
const (
	upWithin = 4 * time.Minute
	upTries  = 5
)

// up starts or restarts the process, and waits until it is ready.
func (r *role) up(t testing.TB) {
	t.Helper()
	r.Process = r.spawn(t)
	tries := 1
	proc.Eventually(t, upWithin, r.Name+": being ready", func() error {
		if r.Ended() {
			if tries++; tries > upTries {
				t.Fatalf("%s has ended %d times before it was ready", r.Name, upTries)
			}
			r.Process = r.spawn(t)
		}
		a, err := send(r.http, http.MethodGet, r.url+"/readyz", "")
		if err == nil && a.status != http.StatusOK {
			err = a
		}
		return err
	})
}

// program configures the start of a role: name of the program, port, additional
// configuration and environment.
type program struct {
	name, from, config string
	port               int
	env                []string
}

// role creates a role that uses the files. Call up to start it.
func (h *processFiles) role(t testing.TB, p program) *role {
	t.Helper()
	from := p.from
	if from == "" {
		from = bin(t, programs.now)
	}
	at := fmt.Sprintf("127.0.0.1:%d", p.port)
	config := filepath.Join(t.TempDir(), p.name+".yaml")
	text := p.config + fmt.Sprintf("nats: {replicas: %d", h.replicas)
	if h.users {
		text += fmt.Sprintf(", user: %s, password: %s", p.name, p.name)
	}
	text += "}\n"
	if p.name != "worker" {
		text += h.redis
	}
	if p.name == "approver" {
		text += fmt.Sprintf("approver:\n  keys:\n    - {name: ann, groups: [ops], hash: \"sha256:%x\"}\n", sha256.Sum256([]byte("ann")))
	}
	write(t, config, text)
	args := []string{"--nats", h.nats, "--config", config, "--log-format", "json"}
	env := p.env
	switch p.name {
	case "frontdoor":
		args = append(args, "--listen", at, "--policy", h.policy)
		env = append(env, "CALLYARD_WARRANTS_KEY_FILE="+h.keys.callers)
	case "approver":
		args = append(args, "--approver-listen", at)
		env = append(env, "CALLYARD_WARRANTS_KEY_FILE="+h.keys.people)
	case "worker":
		args = append(args, "--servers", h.servers)
		env = append(env, "CALLYARD_WORKER_LISTEN="+at, "CALLYARD_WARRANTS_CALLER_KEYS="+h.keys.callersPublic, "CALLYARD_WARRANTS_PEOPLE_KEYS="+h.keys.peoplePublic)
	}
	return &role{url: "http://" + at, http: client(t), spawn: func(t testing.TB) *proc.Process {
		return proc.Start(t, proc.Program{Name: p.name, Path: filepath.Join(from, p.name), Args: args, Env: env})
	}}
}

// sees waits until a front door reports the servers, or all, on that number of workers.
func sees(t testing.TB, door *role, workers int, servers ...string) {
	t.Helper()
	if len(servers) == 0 {
		servers = []string{plainServer, safeServer, callersServer, peoplesServer}
	}
	for _, server := range servers {
		door.Eventually(t, proc.StartWithin, "having "+server, func() error {
			a, err := send(door.http, http.MethodGet, door.url+"/servers/"+server, "")
			if err != nil {
				return err
			}
			var s struct {
				Connected bool `json:"connected"`
				Tools     *int `json:"tools"`
				Workers   []struct {
					State    string `json:"initialization_state"`
					Draining bool   `json:"draining"`
				} `json:"workers"`
			}
			if err := json.Unmarshal(a.body, &s); err != nil || a.status != http.StatusOK {
				return a
			}
			ready := 0
			for _, w := range s.Workers {
				if w.State == "initialized" && !w.Draining {
					ready++
				}
			}
			if !s.Connected || s.Tools == nil || ready != workers {
				return fmt.Errorf("it is on %d of %d workers", ready, workers)
			}
			return nil
		})
	}
}
