package risk

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Holder holds the policy in force and replaces it as a whole. A call is judged
// by one version, whatever is loaded meanwhile. It starts no goroutine: who wants
// a changed file to be taken up calls [Holder.Changed] and [Holder.Reload].
// Use NewHolder; it is safe for concurrent use.
type Holder struct {
	current atomic.Pointer[Policy]

	mu    sync.Mutex // guards the fields below, and lets one load at a time
	path  string
	taken stamp
}

// stamp tells two states of a file apart without reading it.
type stamp struct {
	modified time.Time
	size     int64
}

// NewHolder returns a Holder of p; nil stands for [Default].
func NewHolder(p *Policy) *Holder {
	if p == nil {
		p = Default()
	}
	h := &Holder{}
	h.current.Store(p)
	return h
}

// Current returns the policy in force. Take it once for each call.
func (h *Holder) Current() *Policy { return h.current.Load() }

// Load reads the policy at path, puts it in force and remembers the path for
// Reload. On an error, *[Faults] where the file has faults, everything stays as
// it was.
func (h *Holder) Load(path string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.load(path); err != nil {
		return err
	}
	h.path = path
	return nil
}

// Reload reads the file again that Load read. On an error the old policy stays in
// force, and Changed is false until the file changes again. Without a Load
// before, it does nothing.
func (h *Holder) Reload() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.path == "" {
		return nil
	}
	return h.load(h.path)
}

// Changed says whether the file looks other than when it was read last, by its
// time and size. It is false while the file cannot be found, as in the middle of
// its replacement.
func (h *Holder) Changed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.path == "" {
		return false
	}
	now, err := stampOf(h.path)
	return err == nil && (now.size != h.taken.size || !now.modified.Equal(h.taken.modified))
}

// load expects mu. The stamp is taken before the file is read: a change in
// between is then seen by the next look.
func (h *Holder) load(path string) error {
	now, err := stampOf(path)
	if err != nil {
		return fmt.Errorf("reading the policy: %w", err)
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the policy: %w", err)
	}
	if path == h.path {
		h.taken = now
	}
	p, err := Parse(source, path)
	if err != nil {
		return err
	}
	h.taken = now
	if p.version != h.Current().version {
		h.current.Store(p)
	}
	return nil
}

func stampOf(path string) (stamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}, err
	}
	return stamp{info.ModTime(), info.Size()}, nil
}
