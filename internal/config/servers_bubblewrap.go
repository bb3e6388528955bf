package config

import (
	"fmt"
	"log/slog"
	"time"
)

// Values of the sandbox key of an entry.
const (
	SandboxContainer  = "container"  // the default of a docker section
	SandboxBubblewrap = "bubblewrap" // weaker, for machines without a container engine
)

// Bubblewrap holds the limits of a bubblewrap sandbox. Package bwrap defines their meaning and
// rejects invalid ones.
type Bubblewrap struct {
	Volumes []string          `yaml:"volumes"`   // HOST:INSIDE:ro
	Env     map[string]string `yaml:"env"`       // in addition to that of the entry
	Workdir string            `yaml:"workdir"`   // inside the sandbox
	Memory  int64             `yaml:"memory"`    // bytes of data per process
	PIDs    int64             `yaml:"pids"`      // processes and threads
	Tmpfs   int64             `yaml:"tmpfs"`     // bytes of /tmp
	Files   int64             `yaml:"files"`     // open files per process
	File    int64             `yaml:"file_size"` // bytes of the largest file
	Time    time.Duration     `yaml:"time"`      // maximum run time
}

// LogValue returns the parts of the sandbox that may be shown.
func (b Bubblewrap) LogValue() slog.Value {
	return slog.GroupValue(appendShown(nil, "volumes", b.Volumes, "env", names(b.Env))...)
}

// checkSandbox reads the chosen isolation. A demand that would be ignored silently is a fault.
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

// String returns the parts of the sandbox that may be shown.
func (b Bubblewrap) String() string { return b.LogValue().String() }

// Format prints String for every verb.
func (b Bubblewrap) Format(s fmt.State, _ rune) { _, _ = fmt.Fprint(s, b.String()) }

// MarshalJSON writes the parts that may be shown.
func (b Bubblewrap) MarshalJSON() ([]byte, error) { return shownJSON(b.LogValue()) }
