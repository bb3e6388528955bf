package worker

import (
	"maps"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch/bwrap"
	"github.com/callyard/callyard/internal/launch/sandbox"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Sandbox configures the isolation of calls of high risk: a container, or a bubblewrap sandbox
// if the operator chose that.
type Sandbox struct {
	// Isolation is [schema.IsolationContainer] or [schema.IsolationBubblewrap]. Bubblewrap is
	// configured by the field Sandbox, a container by the fields Image to Spec.
	Isolation string
	Sandbox   bwrap.Spec

	Image   string // as configured by the operator
	Runtime string // as configured by the operator; if empty, the engine's default
	Spec    sandbox.Spec
	// Fault is the reason why nothing can run in it, regardless of the engine; nil if it can.
	Fault error
	// Only means that the server never runs outside it.
	Only bool
}

// Describe returns all settings of the sandbox for display.
func (b *Sandbox) Describe() []sandbox.Setting {
	if b.Isolation != schema.IsolationBubblewrap {
		return b.Spec.Describe()
	}
	var out []sandbox.Setting
	for _, line := range b.Sandbox.Describe() {
		out = append(out, sandbox.Setting(line))
	}
	return out
}

// place returns the kind of isolation for display.
func (b *Sandbox) place() string {
	if b.Isolation == schema.IsolationBubblewrap {
		return "sandbox"
	}
	return "container"
}

// sandboxOf returns the sandbox of an entry, or nil if it has none. It returns an error for high
// risk without a container. Faults of a container are in its Fault and only affect that server.
func sandboxOf(e *config.ServerEntry) (*Sandbox, error) {
	only := e.Risk > risk.Medium
	switch {
	case e.Sandbox == config.SandboxBubblewrap && e.Type == config.TypeStdio:
		return bubblewrapOf(e, only), nil
	case only && (e.Docker == nil || e.Docker.Image == ""):
		return nil, schema.Errorf(schema.KindInvalidRequest, "Server %q has riskLevel %d, which requires a container: set its image in docker.image, or set riskLevel 2 if you accept that its calls run outside a container once they are confirmed.", e.ID, e.Risk)
	case only && e.Type != config.TypeStdio:
		return nil, schema.Errorf(schema.KindInvalidRequest, "Server %q has riskLevel %d and a url, so its calls cannot run in a container here; set riskLevel 2, or run it here with docker.image.", e.ID, e.Risk)
	case e.Docker == nil:
		return nil, nil
	}
	cfg := *e.Docker
	if only {
		// As in MCP Bridge, the command that the entry would start on the host is started in the
		// image. If the server also has a process on the host, the image uses its own command,
		// because paths of one do not exist in the other.
		if cfg.Command == "" && cfg.Args == nil {
			cfg.Command, cfg.Args = e.Command, e.Args
		}
		cfg.Env = maps.Clone(e.Env)
		if cfg.Env == nil {
			cfg.Env = make(map[string]string, len(e.Docker.Env))
		}
		maps.Copy(cfg.Env, e.Docker.Env)
	}
	b := &Sandbox{Isolation: schema.IsolationContainer, Image: cfg.Image, Runtime: cfg.Runtime, Only: only}
	b.Spec, b.Fault = sandbox.Resolve(e.ID, cfg)
	return b, nil
}

// bubblewrapOf returns the bubblewrap sandbox of an entry. It runs the same command as on the host,
// because it uses the programs of the host.
func bubblewrapOf(e *config.ServerEntry, only bool) *Sandbox {
	var cfg bwrap.Config
	if e.Bubblewrap != nil {
		cfg = *e.Bubblewrap
	}
	b := &Sandbox{Isolation: schema.IsolationBubblewrap, Only: only}
	b.Sandbox, b.Fault = bwrap.Resolve(e.ID, cfg, bwrap.Program{Command: e.Command, Args: e.Args, Env: e.Env, Dir: e.Dir})
	return b
}
