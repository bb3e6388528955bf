package config

import (
	"fmt"
	"log/slog"
	"time"
)

// Sandboxes that an entry may name.
const (
	SandboxContainer  = "container"  // what a docker section means without a word
	SandboxBubblewrap = "bubblewrap" // weaker, for machines without a container engine
)

// Bubblewrap says what a sandbox of bubblewrap may use. What it means, and what is
// refused, is package bwrap's to say.
type Bubblewrap struct {
	Volumes []string          `yaml:"volumes"`   // HOST:INSIDE:ro
	Env     map[string]string `yaml:"env"`       // added to that of the entry
	Workdir string            `yaml:"workdir"`   // inside
	Memory  int64             `yaml:"memory"`    // bytes of data of each process
	PIDs    int64             `yaml:"pids"`      // processes and threads
	Tmpfs   int64             `yaml:"tmpfs"`     // bytes of /tmp
	Files   int64             `yaml:"files"`     // open ones in each process
	File    int64             `yaml:"file_size"` // bytes of the largest file
	Time    time.Duration     `yaml:"time"`      // from its start to the kill, at most
}

// LogValue returns what may be shown of the sandbox.
func (b Bubblewrap) LogValue() slog.Value {
	return slog.GroupValue(appendShown(nil, "volumes", b.Volumes, "env", names(b.Env))...)
}

// checkSandbox says which isolation the operator chose. What would be lost in
// silence is a fault: it was a demand.
func (r *serverReader) checkSandbox(d *draft, e *ServerEntry) {
	e.Bubblewrap = d.shape.Bubblewrap
	switch s := d.shape.Sandbox; {
	case !d.has("sandbox"):
	case e.Type != TypeStdio:
		r.fault(d, "sandbox", "a server with a url does not run here, so it cannot run in a sandbox; remove sandbox, or set its command.")
	case s == SandboxContainer && e.Docker == nil:
		r.fault(d, "sandbox", "a container requires an image; add \"docker\" with an image.")
	case s == SandboxBubblewrap && e.Docker != nil:
		r.fault(d, "sandbox", "docker requires a container, which is stronger than bubblewrap; keep one of them.")
	case s == SandboxBubblewrap:
		e.Sandbox = s
	case s != SandboxContainer:
		r.fault(d, "sandbox", "%s is not a known isolation; write \"container\" (with \"docker\") or \"bubblewrap\", which is weaker.", quote(s))
	}
	if d.has("bubblewrap") && d.shape.Sandbox != SandboxBubblewrap {
		r.fault(d, "bubblewrap", "requires a sandbox; add \"sandbox\": \"bubblewrap\", or remove it.")
	}
}

// String returns what may be shown of the sandbox.
func (b Bubblewrap) String() string { return b.LogValue().String() }

// Format prints String for every verb.
func (b Bubblewrap) Format(s fmt.State, _ rune) { _, _ = fmt.Fprint(s, b.String()) }

// MarshalJSON writes what may be shown.
func (b Bubblewrap) MarshalJSON() ([]byte, error) { return shownJSON(b.LogValue()) }
