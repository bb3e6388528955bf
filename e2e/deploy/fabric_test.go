package deploy_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// API keys of the example configurations in this test.
const (
	agentKey = "X-API-Key: agent-key"
	annKey   = "X-API-Key: ann-key"
)

func hash(header string) string {
	_, key, _ := strings.Cut(header, ": ")
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(key)))
}

// fabric is a whole Callyard in separate processes, with the example
// configurations, the users and the permissions of this folder.
type fabric struct {
	nats, worker   *process
	natsAddress    string
	door, approver string // their URLs
	probes         string // of the worker
	folder         string // with the configurations
	again          func(role string) *process
	metrics        string // of the approver
	processes      []*process
	agent, ann     string // headers with their keys
}

// natsEnvironment sets the password of each user of accounts.conf to its name.
func natsEnvironment(store string) []string {
	env := []string{"CALLYARD_NATS_STORE=" + store}
	for _, user := range []string{"frontdoor", "approver", "worker", "operator", "system"} {
		env = append(env, "CALLYARD_NATS_"+strings.ToUpper(user)+"="+user)
	}
	return env
}

// startNATS starts nats-server with a file of deploy/nats, on loopback.
func startNATS(t testing.TB, config string, env ...string) (*process, string) {
	t.Helper()
	p := start(t, append(natsEnvironment(t.TempDir()), env...), fromSetup(t, "nats-server"), "--config", config, "-a", "127.0.0.1", "-p", "-1", "-m", "-1")
	address := p.says(t, `Listening for client connections on (127\.0\.0\.1:\d+)`)[1]
	p.says(t, `Server is ready`)
	return p, address
}

// provision creates the streams and tables, as the operator.
func provision(t testing.TB, url string, env ...string) {
	t.Helper()
	cmd := exec.Command(built(t, "callyard"), "init", "--nats", url)
	cmd.Env = environment(append(env[:len(env):len(env)], "CALLYARD_NATS_USER=operator", "CALLYARD_NATS_PASSWORD=operator")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("callyard init: %v\n%s", err, out)
	}
}

func natsFile(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("nats", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// openFabric starts all processes and waits until a call can be made. scheme is that of
// NATS, and more is added to the examples' variables of each process.
func openFabric(t testing.TB, config, scheme string, natsEnv []string, more ...string) *fabric {
	t.Helper()
	return openConfigured(t, func(fabricValues) string {
		examples, err := filepath.Abs("examples")
		if err != nil {
			t.Fatal(err)
		}
		return examples
	}, config, scheme, natsEnv, more...)
}

// fabricValues holds the values that the configurations of a fabric refer to.
type fabricValues struct {
	nats, redis, secrets string
	approver             string // its public URL
}

// openConfigured is openFabric with the configurations of the folder that configs makes.
func openConfigured(t testing.TB, configs func(fabricValues) string, config, scheme string, natsEnv []string, more ...string) *fabric {
	t.Helper()
	f := &fabric{agent: agentKey, ann: annKey}
	f.nats, f.natsAddress = startNATS(t, config, natsEnv...)
	provision(t, scheme+"://"+f.natsAddress, more...)
	secrets := t.TempDir()
	for _, name := range []string{"frontdoor", "approver"} {
		if out, err := exec.Command(built(t, "callyard"), "keys", "warrant", filepath.Join(secrets, name)).CombinedOutput(); err != nil {
			t.Fatalf("keys warrant: %v\n%s", err, out)
		}
	}
	around := fabricValues{nats: scheme + "://" + f.natsAddress, redis: "redis://" + confirmtest.StartRedis(t, "", porttest.Address(t)).Address + "/0", secrets: secrets, approver: "http://" + porttest.Address(t)}
	folder := configs(around)
	f.folder = folder
	probes := porttest.Address(t)
	f.probes = "http://" + probes
	metrics := porttest.Address(t)
	f.metrics = "http://" + metrics
	env := append([]string{
		"CONFIG_DIR=" + folder, "SECRETS_DIR=" + secrets, "NATS_ADDRESS=" + around.nats, "REDIS_ADDRESS=" + around.redis,
		"AGENT_KEY_HASH=" + hash(agentKey), "ANN_KEY_HASH=" + hash(annKey), "DEMO_SERVER=" + built(t, "demo"),
		"APPROVER_ADDRESS=" + around.approver, "CALLYARD_FRONT_DOOR_DRAIN_DELAY=1ms", "CALLYARD_APPROVER_DRAIN_DELAY=1ms",
	}, more...)
	role := func(name string, more ...string) *process {
		// Each role signs in as its user, which the examples name.
		p := start(t, append(env[:len(env):len(env)], append(more, "CALLYARD_NATS_PASSWORD="+name)...), built(t, name), "--config", filepath.Join(folder, name+".yaml"))
		f.processes = append(f.processes, p)
		return p
	}
	f.worker = role("worker", "CALLYARD_WORKER_LISTEN="+probes)
	door := role("frontdoor", "CALLYARD_FRONT_DOOR_LISTEN=127.0.0.1:0")
	f.again = func(name string) *process {
		if name != "approver" {
			t.Fatalf("a %s cannot be started again here", name)
		}
		p := role(name, "CALLYARD_APPROVER_LISTEN="+strings.TrimPrefix(around.approver, "http://"), "CALLYARD_APPROVER_METRICS_LISTEN="+metrics)
		p.says(t, `approver is open`)
		return p
	}
	approver := f.again("approver")
	f.door = door.says(t, `front door is open.*"url":"(http://[^"]+)"`)[1]
	f.approver = approver.says(t, `approver is open.*"url":"(http://[^"]+)"`)[1]
	eventually(t, "the demo server being ready", func() error {
		status, body := ask(t, "GET", f.door+"/servers/demo/tools", "", agentKey)
		if status != 200 || !strings.Contains(body, `"echo"`) { // the worker announces the tools after the server
			return fmt.Errorf("%d %.300s", status, body)
		}
		return nil
	})
	return f
}

// call calls a tool of the demo server.
func (f *fabric) call(t testing.TB, tool, arguments string) (int, string) {
	t.Helper()
	return ask(t, "POST", f.door+"/servers/demo/tools/"+tool, arguments, f.agent)
}

type held struct {
	Confirmation string `json:"confirmation_id"`
	Call         string `json:"call_id"`
	Approval     string `json:"approval_id"`
}

func (f *fabric) hold(t testing.TB, tool, arguments string) held {
	t.Helper()
	var h held
	status, body := f.call(t, tool, arguments)
	if err := json.Unmarshal([]byte(body), &h); err != nil || status != 202 {
		t.Fatalf("%s is not held: %d %s", tool, status, body)
	}
	return h
}

// ends waits until a call or a batch has the state.
func (f *fabric) ends(t testing.TB, path, state string) {
	t.Helper()
	eventually(t, path+" being "+state, func() error {
		status, body := ask(t, "GET", f.door+path, "", f.agent)
		var s struct{ State string }
		if err := json.Unmarshal([]byte(body), &s); err != nil || status != 200 || s.State != state {
			return fmt.Errorf("%d %.300s", status, body)
		}
		return nil
	})
}

// works makes one call of each kind.
func (f *fabric) works(t testing.TB) {
	t.Helper()
	if status, body := f.call(t, "echo", `{"message":"hello"}`); status != 200 || !strings.Contains(body, "hello") {
		t.Errorf("a call: %d %s", status, body)
	}
	if status, body := f.call(t, "sleep", `{"seconds":0.01}`); status != 200 {
		t.Errorf("a call with progress: %d %s", status, body)
	}

	asked := f.hold(t, "fail", `{}`)
	if status, body := ask(t, "POST", f.door+"/confirmations/"+asked.Confirmation, `{"confirm":true}`, f.agent); status != 200 {
		t.Errorf("a call that its caller confirmed: %d %s", status, body)
	}

	// Arguments larger than a message are sent in parts.
	waits := f.hold(t, "big", `{"bytes":3000000}`)
	var seen struct {
		Digest string `json:"arguments_digest"`
	}
	eventually(t, "the approver showing the approval", func() error {
		status, body := ask(t, "GET", f.approver+"/approvals/"+waits.Approval, "", f.ann)
		if err := json.Unmarshal([]byte(body), &seen); err != nil || status != 200 || seen.Digest == "" {
			return fmt.Errorf("%d %.300s", status, body)
		}
		return nil
	})
	if status, body := ask(t, "POST", f.approver+"/approvals/"+waits.Approval+"/decisions", `{"kind":"approve","digest":"`+seen.Digest+`"}`, f.ann); status != 200 {
		t.Fatalf("the decision: %d %s", status, body)
	}
	f.ends(t, "/calls/"+waits.Call, "succeeded")

	denied := f.hold(t, "big", `{"bytes":5}`)
	eventually(t, "denying", func() error {
		if status, body := ask(t, "POST", f.approver+"/approvals/"+denied.Approval+"/decisions", `{"kind":"deny"}`, f.ann); status != 200 {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	f.ends(t, "/calls/"+denied.Call, "denied")

	var lines strings.Builder
	for i := range 20 {
		fmt.Fprintf(&lines, `{"custom_id":"c%d","server":"demo","tool":"add","arguments":{"a":%d,"b":1}}`+"\n", i, i)
	}
	status, body := ask(t, "POST", f.door+"/batches", lines.String(), f.agent, "Content-Type: application/x-ndjson")
	var b struct{ ID string }
	if err := json.Unmarshal([]byte(body), &b); err != nil || status != 201 {
		t.Fatalf("a batch: %d %s", status, body)
	}
	f.ends(t, "/batches/"+b.ID, "completed")
	if status, body = ask(t, "POST", f.door+"/servers/demo/tools/add", `{"a":1,"b":2}`, f.agent, "Idempotency-Key: one"); status != 200 {
		t.Errorf("a durable call: %d %s", status, body)
	}
	eventually(t, "the calls being in the call records", func() error {
		status, body := ask(t, "GET", f.door+"/calls?limit=5", "", f.agent)
		if status != 200 || !strings.Contains(body, asked.Call) && !strings.Contains(body, "call_") {
			return fmt.Errorf("%d %.300s", status, body)
		}
		return nil
	})
}

// clean checks that NATS denied nothing.
func (f *fabric) clean(t testing.TB) {
	t.Helper()
	for _, p := range append(f.processes[:len(f.processes):len(f.processes)], f.nats) {
		for line := range strings.Lines(p.out.String()) {
			if strings.Contains(strings.ToLower(line), "violation") {
				t.Errorf("something was denied: %s", line)
			}
		}
	}
}

func TestFabricRunsWithNATSPermissions(t *testing.T) {
	f := openFabric(t, natsFile(t, "nats-server.conf"), "nats", nil)
	f.works(t)
	f.stop(t)
	f.clean(t)
}

// stop stops the roles gracefully, because their shutdown may need permissions
// too.
func (f *fabric) stop(t testing.TB) {
	t.Helper()
	for _, p := range f.processes {
		if err := p.stopped(); err != nil {
			t.Error(err)
		}
	}
}
