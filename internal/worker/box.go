package worker

import (
	"maps"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch/box"
	"github.com/callyard/callyard/internal/launch/bwrap"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Box is what calls of high risk run in: a container, or a sandbox of bubblewrap
// where the operator chose that.
type Box struct {
	// Isolation is [schema.IsolationContainer] or [schema.IsolationBubblewrap]. Of
	// the latter Sandbox counts, of the former what follows it.
	Isolation string
	Sandbox   bwrap.Spec

	Image   string // as the operator named it
	Runtime string // as the operator named it, "" for the engine's
	Spec    box.Spec
	// Fault says why nothing can run in it, whatever the engine; nil where it can.
	Fault error
	// Only says that the server never runs outside it.
	Only bool
}

// Describe returns everything that holds for the box, for people.
func (b *Box) Describe() []box.Setting {
	if b.Isolation != schema.IsolationBubblewrap {
		return b.Spec.Describe()
	}
	var out []box.Setting
	for _, line := range b.Sandbox.Describe() {
		out = append(out, box.Setting(line))
	}
	return out
}

// place is what a call runs in, for people.
func (b *Box) place() string {
	if b.Isolation == schema.IsolationBubblewrap {
		return "sandbox"
	}
	return "container"
}

// boxOf reads the container of an entry, nil where it has none. The error is for
// high risk without a container; what is wrong with a container is in its Fault,
// and costs that server alone.
func boxOf(e *config.ServerEntry) (*Box, error) {
	only := e.Risk > risk.Medium
	switch {
	case e.Sandbox == config.SandboxBubblewrap && e.Type == config.TypeStdio:
		return sandboxOf(e, only), nil
	case only && (e.Docker == nil || e.Docker.Image == ""):
		return nil, schema.Errorf(schema.KindInvalidRequest, "Server %q has riskLevel %d, and high risk runs in a container only: name its image in docker.image. It is not run with less; set riskLevel 2 if you accept that its calls run outside a container once they are confirmed.", e.ID, e.Risk)
	case only && e.Type != config.TypeStdio:
		return nil, schema.Errorf(schema.KindInvalidRequest, "Server %q has riskLevel %d and is reached by url, so its calls cannot run in a container of ours; set riskLevel 2, or run it here with docker.image.", e.ID, e.Risk)
	case e.Docker == nil:
		return nil, nil
	}
	cfg := *e.Docker
	if only {
		// As in MCP Bridge: what the entry would start on the host is started in the
		// image. Beside a process on the host the image speaks for itself, since the
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
	b := &Box{Isolation: schema.IsolationContainer, Image: cfg.Image, Runtime: cfg.Runtime, Only: only}
	b.Spec, b.Fault = box.Resolve(e.ID, cfg)
	return b, nil
}

// sandboxOf reads the sandbox of an entry. What is started in it is what would be
// started on the host: its programs are those of the host.
func sandboxOf(e *config.ServerEntry, only bool) *Box {
	var cfg bwrap.Config
	if e.Bubblewrap != nil {
		cfg = *e.Bubblewrap
	}
	b := &Box{Isolation: schema.IsolationBubblewrap, Only: only}
	b.Sandbox, b.Fault = bwrap.Resolve(e.ID, cfg, bwrap.Program{Command: e.Command, Args: e.Args, Env: e.Env, Dir: e.Dir})
	return b
}
