package worker

import (
	"errors"
	"os"

	"github.com/callyard/callyard/internal/kit/dirstate"
	"github.com/callyard/callyard/pkg/schema"
)

// mostSnapshots bounds the snapshots of one server, each of at most [dirstate.MaxBytes].
const mostSnapshots = 256

func errNoSnapshot(s *Served) *schema.Error {
	return schema.Errorf(schema.KindNotFound, "There is no such snapshot of the server %q; snapshots end with the worker.", s.Session.Spec.ID)
}

// snapshot keeps a copy of the directory of a lease under its digest, which it returns. What
// the process has in memory alone is no part of it.
func (l *leases) snapshot(id string) (string, error) {
	l.mu.Lock()
	one, kept := l.open[id], len(l.snapshots)
	l.mu.Unlock()
	switch {
	case one == nil:
		return "", schema.Errorf(schema.KindServerFailed, "The lease has ended.")
	case l.dialed:
		return "", schema.Errorf(schema.KindConflict, "The state of the server %q is elsewhere, so no snapshot of it can be kept.", l.served.Session.Spec.ID)
	case kept >= mostSnapshots:
		return "", schema.Errorf(schema.KindUnavailable, "There are %d snapshots of the server %q, the most that are kept.", kept, l.served.Session.Spec.ID)
	}
	dir, err := os.MkdirTemp(l.set.Base, "snapshot-")
	if err == nil {
		err = dirstate.Copy(one.dir, dir)
	}
	var sum string
	if err == nil {
		sum, err = dirstate.Digest(dir) // of the copy: it is what episodes begin with
	}
	if err != nil {
		return "", schema.Errorf(schema.KindUnavailable, "The snapshot cannot be kept: %w", errors.Join(err, os.RemoveAll(dir)))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.snapshots[sum] != "" || l.ctx.Err() != nil { // the same state is there already
		return sum, os.RemoveAll(dir)
	}
	if l.snapshots == nil {
		l.snapshots = make(map[string]string)
	}
	l.snapshots[sum] = dir
	return sum, nil
}

// dropSnapshots removes all snapshots.
func (l *leases) dropSnapshots() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for sum, dir := range l.snapshots {
		if err := os.RemoveAll(dir); err != nil {
			l.w.log.Warn("a snapshot was not removed", "directory", dir, "error", err)
		}
		delete(l.snapshots, sum)
	}
}
