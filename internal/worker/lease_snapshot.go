package worker

import (
	"errors"
	"os"
	"slices"

	"github.com/callyard/callyard/internal/kit/dirstate"
	"github.com/callyard/callyard/pkg/schema"
)

// mostSnapshots bounds the snapshots of one server, each of at most [dirstate.MaxBytes]. The
// oldest makes room for another one.
const mostSnapshots = 256

func errNoSnapshot(s *Served) *schema.Error {
	return schema.Errorf(schema.KindNotFound, "There is no such snapshot of the server %q; the last %d are kept, until the worker ends.", s.Session.Spec.ID, mostSnapshots)
}

// snapshot keeps a copy of the directory of a lease under its digest, which it returns. What
// the process has in memory alone is no part of it.
func (l *leases) snapshot(id string) (string, error) {
	l.mu.Lock()
	one := l.open[id]
	l.mu.Unlock()
	switch {
	case one == nil:
		return "", schema.Errorf(schema.KindServerFailed, "The lease has ended.")
	case l.dialed, l.pool != nil:
		return "", schema.Errorf(schema.KindConflict, "The state of the server %q is elsewhere, so no snapshot of it can be kept.", l.served.Session.Spec.ID)
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

// keep puts a directory among the snapshots and returns the one that is to be removed: itself
// where the same state is there already or the leases end, else the oldest where there are too
// many, else "". An episode that copies that one is refused; see [leases.begin].
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
	if len(l.kept) >= mostSnapshots {
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

// keeps says whether the directory is still that of the snapshot.
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
