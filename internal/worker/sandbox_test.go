package worker

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func described(t *testing.T, b *Sandbox) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, line := range b.Spec.Describe() {
		out[line.Key] = line.Value
	}
	return out
}

func TestHighRiskWithoutAContainerIsRefused(t *testing.T) {
	for name, e := range map[string]config.ServerEntry{
		"no docker": {ID: "s", Type: config.TypeStdio, Command: "x", Risk: 3},
		"no image":  {ID: "s", Type: config.TypeStdio, Command: "x", Risk: 3, Docker: &config.Docker{Network: "none"}},
		"elsewhere": {ID: "s", Type: config.TypeHTTP, URL: "https://h.example", Risk: 3, Docker: &config.Docker{Image: "i:1"}},
		"unknown":   {ID: "s", Type: config.TypeStdio, Command: "x", Risk: 7},
	} {
		c := settings.WorkerDefaults()
		served, err := Serve(&c, []config.ServerEntry{e, {ID: "calm", Type: config.TypeStdio, Command: "x"}})
		if err == nil || schema.KindOf(err) != schema.KindInvalidRequest || !strings.Contains(err.Error(), `"s"`) || !strings.Contains(err.Error(), "riskLevel") {
			t.Errorf("%s: %v, %v", name, served, err)
		}
	}
}

func TestTooPermissiveContainerDisablesOnlyItsServer(t *testing.T) {
	c := settings.WorkerDefaults()
	served, err := Serve(&c, []config.ServerEntry{
		{ID: "wide", Type: config.TypeStdio, Command: "x", Risk: 3, Docker: &config.Docker{Image: "i:1", Privileged: true}},
		{ID: "calm", Type: config.TypeStdio, Command: "x"},
	})
	if err != nil || len(served) != 2 || served[0].Sandbox == nil || served[0].Sandbox.Fault == nil || !served[0].Sandbox.Only || served[1].Sandbox != nil {
		t.Fatalf("%+v, %v", served, err)
	}
	if _, err := ParseAdded(&c, "wide", []byte(`{"riskLevel":3,"docker":{"image":"i:1","privileged":true}}`)); schema.KindOf(err) != schema.KindInvalidRequest {
		t.Errorf("over the API it is %v", err)
	}
}

func TestHighRiskServerCommandRunsInItsImage(t *testing.T) {
	e := config.ServerEntry{
		ID: "s", Type: config.TypeStdio, Command: "node", Args: []string{"server.js"}, Env: map[string]string{"A": "1", "B": "1"}, Risk: 3,
		Docker: &config.Docker{Image: "i:1", Env: map[string]string{"B": "2", "C": "2"}},
	}
	pick := func(m map[string]string) map[string]string {
		return map[string]string{"command": m["command"], "args": m["args"], "env": m["env"]}
	}
	b, err := sandboxOf(&e)
	if err != nil || b.Fault != nil {
		t.Fatal(err, b)
	}
	if diff := cmp.Diff(map[string]string{"command": "node", "args": "[1 not shown]", "env": "A, B, C"}, pick(described(t, b))); diff != "" {
		t.Errorf("high risk (-want +got):\n%s", diff)
	}
	if e.Docker.Env["A"] != "" || len(e.Env) != 2 {
		t.Errorf("the entry was changed: %v, %v", e.Env, e.Docker.Env)
	}
	e.Docker.Command = "/own"
	if b, _ = sandboxOf(&e); described(t, b)["command"] != "/own" || described(t, b)["args"] != "" {
		t.Errorf("with a command of its own: %v", described(t, b))
	}
	// If there is also a process on the host, its paths and secrets are not used in the container.
	e.Docker.Command, e.Risk = "", 2
	if b, _ = sandboxOf(&e); b.Only {
		t.Error("medium risk runs in containers only")
	}
	if diff := cmp.Diff(map[string]string{"command": "", "args": "", "env": "B, C"}, pick(described(t, b))); diff != "" {
		t.Errorf("medium risk (-want +got):\n%s", diff)
	}
}

// frame returns a call as the bus delivers it.
func frame(method string) *bus.CallFrame {
	return &bus.CallFrame{ID: "call_1", Method: method, Server: "s", Tool: "echo", Payload: []byte(`{}`)}
}

func TestHighRiskNeverRunsOutsideAContainer(t *testing.T) {
	only := &sandboxed{id: "s", sandbox: &Sandbox{Only: true}, state: schema.StateError, fault: "The engine is gone."}
	high, err := risk.Parse([]byte("rules:\n  - {name: r, match: {server: s}, level: 3}\n"), "policy")
	if err != nil {
		t.Fatal(err)
	}
	policy := risk.NewHolder(high)
	for name, c := range map[string]struct {
		w      *Worker
		h      *held
		method string
	}{
		"by riskLevel, without a container":    {&Worker{}, &held{served: Served{Risk: 3}}, ""},
		"by an unknown risk level":             {&Worker{}, &held{served: Served{Risk: 9}}, ""},
		"by policy, without a container":       {&Worker{o: Options{Policy: policy}}, &held{pool: &session.Pool{}}, ""},
		"in a container that is not ready":     {&Worker{}, &held{served: Served{Risk: 3}, sandboxed: only}, ""},
		"reading from a server in a container": {&Worker{}, &held{served: Served{Risk: 3}, sandboxed: only}, schema.MethodReadResource},
		"a prompt of a server in a container":  {&Worker{}, &held{served: Served{Risk: 3}, sandboxed: only}, schema.MethodGetPrompt},
	} {
		t.Run(name, func(t *testing.T) {
			v, refusal := c.w.judge(c.h, frame(c.method))
			if refusal == nil || refusal.Kind != schema.KindUnavailable || !refusal.Retryable || !v.sandboxed {
				t.Errorf("%+v, %v", v, refusal)
			}
		})
	}
}

func TestWorkerAppliesThePolicyToOtherMethods(t *testing.T) {
	denied, err := risk.Parse([]byte("rules:\n  - {name: r, match: {server: s, method: prompts/get}, level: 1}\n  - {name: d, match: {server: s}, deny: closed}\n"), "policy")
	if err != nil {
		t.Fatal(err)
	}
	policy := &Worker{o: Options{Policy: risk.NewHolder(denied)}}
	for name, c := range map[string]struct {
		w       *Worker
		risk    int
		method  string
		refused bool
	}{
		"no policy":              {&Worker{}, 0, schema.MethodReadResource, false},
		"medium risk":            {&Worker{}, 2, schema.MethodReadResource, true},
		"high risk, unsandboxed": {&Worker{}, 3, schema.MethodComplete, true},
		"a rule that denies":     {policy, 1, schema.MethodReadResource, true},
		"a rule of the method":   {policy, 2, schema.MethodGetPrompt, false},
	} {
		_, refusal := c.w.judge(&held{served: Served{Risk: c.risk}}, frame(c.method))
		if (refusal != nil) != c.refused || refusal != nil && refusal.Kind != schema.KindForbidden {
			t.Errorf("%s: %v", name, refusal)
		}
	}
}

func TestWorkerIsPresumedDeadOnlyWhenCertain(t *testing.T) {
	now := time.Now()
	p := &peers{self: "wme", seen: map[string]time.Time{}}
	dead := func(want bool, why string) {
		t.Helper()
		if got := !p.aliveAt("wother", now); got != want {
			t.Errorf("%s: taken for dead: %t", why, got)
		}
	}
	dead(false, "before it listens")
	p.since = now
	dead(false, "it has just begun to listen")
	now = now.Add(10 * time.Second)
	dead(false, "it does not even hear itself")
	p.heard("wme", now)
	dead(false, "it hears itself again, and the others will follow")
	for range 5 {
		now = now.Add(time.Second)
		p.heard("wme", now)
	}
	dead(true, "a worker that was never heard")
	p.heard("wother", now)
	dead(false, "a worker that was heard")
	for range 5 {
		now = now.Add(time.Second)
		p.heard("wme", now)
	}
	dead(true, "a worker that fell silent")
	now = now.Add(3 * time.Second)
	dead(false, "the connection is gone")
}

func TestOwnerNamesAreValidForDockerEngines(t *testing.T) {
	for id, want := range map[schema.WorkerID]string{"worker_1": "wworker_1", "a/b:c_1": "wa-b-c_1", "-x": "w-x"} {
		if got := ownerName(id); got != want {
			t.Errorf("%q became %q", id, got)
		}
	}
}

func TestSandboxIsChosenByTheOperatorOnly(t *testing.T) {
	c := settings.WorkerDefaults()
	served, err := Serve(&c, []config.ServerEntry{{ID: "s", Type: config.TypeStdio, Command: "x", Risk: 3, Sandbox: config.SandboxBubblewrap}})
	if err != nil || len(served) != 1 || served[0].Sandbox == nil || served[0].Sandbox.Fault != nil || !served[0].Sandbox.Only || served[0].Sandbox.Isolation != schema.IsolationBubblewrap {
		t.Fatalf("%+v, %v", served, err)
	}
	if _, err := ParseAdded(&c, "s", []byte(`{"command":"x","riskLevel":3,"sandbox":"bubblewrap"}`)); schema.KindOf(err) != schema.KindInvalidRequest || !strings.Contains(err.Error(), "operator") {
		t.Errorf("over the API it is %v", err)
	}
}

func TestRequiredContainerIsNotReplacedByAWeakerSandbox(t *testing.T) {
	rules, err := risk.Parse([]byte("rules:\n  - {name: r, match: {tool: echo}, sandbox: container}\n"), "policy")
	if err != nil {
		t.Fatal(err)
	}
	w := &Worker{o: Options{Policy: risk.NewHolder(rules)}}
	h := &held{served: Served{Risk: 3}, sandboxed: &sandboxed{id: "s", sandbox: &Sandbox{Only: true, Isolation: schema.IsolationBubblewrap}, state: schema.StateInitialized}}
	if _, refusal := w.judge(h, frame("")); refusal == nil || !strings.Contains(refusal.Detail, "weaker isolation (bubblewrap)") {
		t.Errorf("it is refused with %v", refusal)
	}
}

// A container that is ready only after calls were aborted must not run its call: nothing would end it
// before the timeout of the call.
func TestACallThatGetsItsSandboxAfterTheEndDoesNotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &sandboxed{id: "s", sandbox: &Sandbox{}, in: &sandboxes{}, running: make(map[*session.Single]struct{})}
		b.stopped, b.stop = context.WithCancel(t.Context())
		b.calls, b.cut = context.WithCancel(t.Context())
		arrived, started := make(chan struct{}), false
		if !b.begin(&job{}, time.Hour, func(context.Context, time.Time) {
			<-arrived
			started = b.enter(&session.Single{})
		}) {
			t.Fatal("the call was not taken")
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		closed := make(chan error, 1)
		go func() { closed <- b.close(ended) }()
		synctest.Wait() // it waits for the call, which holds no container that it could end
		close(arrived)
		if err := <-closed; err != nil || started {
			t.Errorf("it started: %t, %v", started, err)
		}
	})
}
