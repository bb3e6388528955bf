package worker

import (
	"maps"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch/bwrap"
	"github.com/callyard/callyard/internal/launch/sandbox"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Sandbox is what calls of high risk run in: a container, or a sandbox of bubblewrap
// where the operator chose that.
type Sandbox struct {
	// Isolation is [schema.IsolationContainer] or [schema.IsolationBubblewrap]. Of
	// the latter Sandbox counts, of the former what follows it.
	Isolation string
	Sandbox   bwrap.Spec

	Image   string // as the operator named it
	Runtime string // as the operator named it, "" for the engine's
	Spec    sandbox.Spec
	// Fault says why nothing can run in it, whatever the engine; nil where it can.
	Fault error
	// Only says that the server never runs outside it.
	Only bool
}

// Describe returns everything that holds for the sandbox, for people.
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

// place is what a call runs in, for people.
func (b *Sandbox) place() string {
	if b.Isolation == schema.IsolationBubblewrap {
		return "sandbox"
	}
	return "container"
}

// sandboxOf reads the container of an entry, nil where it has none. The error is for
// high risk without a container; what is wrong with a container is in its Fault,
// and costs that server alone.
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
		// As in MCP Bridge: what the entry would start on the host is started in the
		// image. Next to a process on the host the image speaks for itself, since the
		// paths of one mean nothing in the other.
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

// bubblewrapOf reads the bubblewrap sandbox of an entry. It runs the command that would
// run on the host: its programs are those of the host.
func bubblewrapOf(e *config.ServerEntry, only bool) *Sandbox {
	var cfg bwrap.Config
	if e.Bubblewrap != nil {
		cfg = *e.Bubblewrap
	}
	b := &Sandbox{Isolation: schema.IsolationBubblewrap, Only: only}
	b.Sandbox, b.Fault = bwrap.Resolve(e.ID, cfg, bwrap.Program{Command: e.Command, Args: e.Args, Env: e.Env, Dir: e.Dir})
	return b
}
