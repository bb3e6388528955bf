package setup_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/reload"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/setup/approverrole"
	"github.com/callyard/callyard/internal/setup/frontdoorrole"
	"github.com/callyard/callyard/internal/setup/workerrole"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// edited is a process of all roles whose files are edited.
type edited struct {
	*setup.Prepared
	t       *testing.T
	dir     string
	log     bytes.Buffer
	worker  workerrole.Setup
	callers []authn.Key
}

func openEdited(t *testing.T, files map[string]string) *edited {
	t.Helper()
	e := &edited{t: t, dir: t.TempDir()}
	for name, text := range files {
		e.write(name, text)
	}
	t.Setenv("CALLYARD_POLICY", filepath.Join(e.dir, "policy.yaml"))
	t.Setenv("CALLYARD_WORKER_SERVERS", filepath.Join(e.dir, "servers.json"))
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	setup.AddFlags(fs)
	if err := fs.Parse([]string{"--config", filepath.Join(e.dir, "callyard.yaml")}); err != nil {
		t.Fatal(err)
	}
	var err error
	door, approver := new(frontdoorrole.Setup).Role(), new(approverrole.Setup).Role()
	door.ReplaceKeys = func(k []authn.Key) error { e.callers = k; return nil }
	if e.Prepared, err = setup.Prepare(fs, &e.log, nil, door, approver, e.worker.Role()); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *edited) write(name, text string) {
	e.t.Helper()
	if err := os.WriteFile(filepath.Join(e.dir, name), []byte(text), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

// run applies edits until done reports that they are visible, and returns the parts.
func (e *edited) run(done func(map[string]schema.InForce) bool) map[string]schema.InForce {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), time.Minute)
	defer cancel()
	part := e.ReloadPart(telemetry.NewMetrics())
	if err := part.Start(ctx); err != nil {
		e.t.Fatal(err)
	}
	defer func() {
		if err := part.Stop(context.WithoutCancel(ctx)); err != nil {
			e.t.Error(err)
		}
	}()
	for {
		parts := make(map[string]schema.InForce)
		for _, p := range e.Config.InForce() {
			parts[p.Part] = p
		}
		if done(parts) {
			return parts
		}
		select {
		case <-ctx.Done():
			e.t.Fatalf("it is not seen: %+v", parts)
		case <-time.After(reload.Every / 10):
		}
	}
}

func keysText(names ...string) string {
	text := "front_door:\n  max_queue: 5\n  keys:\n"
	for _, name := range names {
		text += "    - {name: " + name + ", hash: '" + authn.Hash(name) + "'}\n"
	}
	return text
}

func serversText(t *testing.T, commands map[string]string) string {
	t.Helper()
	entries := make(map[string]any)
	for name, command := range commands {
		entries[name] = map[string]any{"command": command, "env": map[string]string{"TOKEN": "hunter2"}}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEditsAreCheckedLikeAStart(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e := openEdited(t, map[string]string{
		"callyard.yaml": keysText("ci"), "policy.yaml": "rules: [{name: a, level: 1}]", "servers.json": serversText(t, map[string]string{"good": self, "never": "no-such-program"}),
	})
	before := e.Config.InForce()
	e.write("callyard.yaml", "front_door: {max_queue: 5}\n")
	e.write("policy.yaml", "rules: [{name: a, level: 9}]")
	e.write("servers.json", serversText(t, map[string]string{"good": "no-such-program-either", "never": "no-such-program"}))
	parts := e.run(func(p map[string]schema.InForce) bool {
		return p[schema.PartKeys].Error != "" && p[schema.PartPolicy].Error != "" && p[schema.PartServers].Error != ""
	})
	for part, want := range map[string]string{schema.PartKeys: "front_door.keys: is empty now", schema.PartPolicy: "rules[0].level", schema.PartServers: "no-such-program-either"} {
		if !strings.Contains(parts[part].Error, want) {
			t.Errorf("%s: %s", part, parts[part].Error)
		}
	}
	for _, was := range before {
		if parts[was.Part].Version != was.Version {
			t.Errorf("a bad edit changed the version of %s", was.Part)
		}
	}
	if len(e.worker.Served()) != 2 || e.callers != nil || e.Policy.Current().Version() != parts[schema.PartPolicy].Version {
		t.Error("a bad edit was applied")
	}
	// Valid edits are applied although a server could not start before.
	e.write("callyard.yaml", strings.Replace(keysText("ci", "new"), "max_queue: 5", "max_queue: 6", 1))
	e.write("policy.yaml", "rules: [{name: a, level: 2}]")
	e.write("servers.json", serversText(t, map[string]string{"good": self, "never": "no-such-program", "more": self}))
	parts = e.run(func(p map[string]schema.InForce) bool {
		for _, was := range before {
			if p[was.Part].Error != "" || p[was.Part].Version == was.Version {
				return false
			}
		}
		return true
	})
	if len(e.worker.Served()) != 3 || len(e.callers) != 2 || len(e.Policy.Current().Rules()) != 1 || e.Policy.Current().Version() != parts[schema.PartPolicy].Version {
		t.Errorf("%d servers, %d keys are in force", len(e.worker.Served()), len(e.callers))
	}
	if said := e.log.String(); !strings.Contains(said, "take effect at the next start") || !strings.Contains(said, "front_door.max_queue") || strings.Contains(said, "hunter2") {
		t.Errorf("the log: %s", said)
	}
}
