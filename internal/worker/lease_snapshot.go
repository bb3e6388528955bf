package worker

import (
	"errors"
	"os"
	"slices"

	"github.com/callyard/callyard/internal/kit/dirstate"
	"github.com/callyard/callyard/pkg/schema"
)

// maxSnapshots limits the snapshots of one server, each of at most [dirstate.MaxBytes]. The oldest
// is removed to make room for a new one.
const maxSnapshots = 256

func errNoSnapshot(s *Served) *schema.Error {
	return schema.Errorf(schema.KindNotFound, "There is no such snapshot of the server %q; the last %d are kept, until the worker ends.", s.Session.Spec.ID, maxSnapshots)
}

// snapshot copies the directory of a lease and keeps the copy under its digest, which it returns.
// The memory of the process is not part of it.
func (l *leases) snapshot(id string) (string, error) {
	l.mu.Lock()
	one := l.open[id]
	l.mu.Unlock()
	switch {
	case one == nil:
		return "", schema.Errorf(schema.KindServerFailed, "The lease has ended.")
	case l.dialed, l.pool != nil:
		return "", schema.Errorf(schema.KindConflict, "No snapshot of the server %q can be kept, because its state is not in a directory of this worker.", l.served.Session.Spec.ID)
	}
	dir, err := os.MkdirTemp(l.set.Base, "snapshot-")
	if err == nil {
		err = dirstate.Copy(one.dir, dir)
	}
	var sum string
	if err == nil {
		sum, err = dirstate.Digest(dir) // of the copy, because episodes start with it
	}
	if err != nil {
		return "", schema.Errorf(schema.KindUnavailable, "The snapshot cannot be kept: %w", errors.Join(err, dirstate.Remove(dir)))
	}
	unused, err := l.keep(sum, dir)
	if unused != "" {
		l.remove(unused)
	}
	if err != nil {
		return "", schema.Errorf(schema.KindUnavailable, "The snapshot cannot be kept: %w", err)
	}
	return sum, nil
}

// keep adds a directory to the snapshots and returns the directory to remove: dir itself if the same
// state is already kept or the leases are ending, the oldest one if there are too many, else "". An
// episode that is copying the removed one is refused; see [leases.begin].
func (l *leases) keep(sum, dir string) (unused string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return dir, errors.New("the processes of the server are being ended")
	}
	if i := slices.Index(l.kept, sum); i >= 0 {
		l.kept = append(slices.Delete(l.kept, i, i+1), sum)
		return dir, nil
	}
	if len(l.kept) >= maxSnapshots {
		unused = l.snapshots[l.kept[0]]
		delete(l.snapshots, l.kept[0])
		l.kept = slices.Delete(l.kept, 0, 1)
	}
	if l.snapshots == nil {
		l.snapshots = make(map[string]string)
	}
	l.snapshots[sum], l.kept = dir, append(l.kept, sum)
	return unused, nil
}

// keeps reports whether the directory still holds the snapshot.
func (l *leases) keeps(sum, dir string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.snapshots[sum] == dir
}

// dropSnapshots removes all snapshots.
func (l *leases) dropSnapshots() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for sum, dir := range l.snapshots {
		l.remove(dir)
		delete(l.snapshots, sum)
	}
}

func (l *leases) remove(dir string) {
	if err := dirstate.Remove(dir); err != nil {
		l.w.log.Warn("a snapshot was not removed", "directory", dir, "error", err)
	}
}
