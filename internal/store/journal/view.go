package journal

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/watchers"
	"github.com/callyard/callyard/internal/tenants/retention"
	"github.com/callyard/callyard/pkg/schema"
)

// view caches manifests in memory: those of all journals that have not ended, and the latest ended ones.
type view struct {
	maxEnded     int
	retention    retention.Periods
	keepPayloads time.Duration // for tenants without a retention; 0 means no limit

	mu      sync.RWMutex
	rows    map[schema.BatchID]row
	unended map[schema.BatchID]row // rows that have not ended
	due     map[schema.BatchID]due // journals with payloads to delete, even if they are no longer in rows
	ended   []schema.BatchID       // ids in the order of their observed end
	// withCalls holds the ended journals whose calls are not deleted, even if they are no longer in rows.
	withCalls map[schema.BatchID]Overdue
	watchers  watchers.Set[*Manifest]
}

type row struct {
	m        *Manifest // immutable
	revision uint64
}

func newView(maxEnded int) *view {
	return &view{maxEnded: maxEnded, rows: map[schema.BatchID]row{}, unended: map[schema.BatchID]row{}, due: map[schema.BatchID]due{}, withCalls: map[schema.BatchID]Overdue{}}
}

// put applies a write unless a newer one is known.
func (v *view) put(m *Manifest, revision uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	was, known := v.rows[m.ID]
	if known && was.revision >= revision {
		return
	}
	v.noteLocked(m)
	if m.Deleted {
		delete(v.rows, m.ID)
		delete(v.unended, m.ID)
		return
	}
	v.rows[m.ID] = row{m, revision}
	if m.State == Ended {
		delete(v.unended, m.ID)
	} else {
		v.unended[m.ID] = v.rows[m.ID]
	}
	if m.State != Ended || known && was.m.State == Ended {
		return
	}
	v.ended = append(v.ended, m.ID)
	if over := len(v.ended) - v.maxEnded; over > 0 {
		for _, id := range v.ended[:over] {
			if v.rows[id].m != nil && v.rows[id].m.State == Ended {
				delete(v.rows, id)
			}
		}
		v.ended = slices.Delete(v.ended, 0, over)
	}
}

func (v *view) get(id schema.BatchID) (*Manifest, uint64, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	r, ok := v.rows[id]
	return r.m, r.revision, ok
}

// fitting returns the matching journals. If open is set, it returns only those that have not ended.
func (v *view) fitting(open bool, fits func(*Manifest) bool) []*Manifest {
	v.mu.RLock()
	defer v.mu.RUnlock()
	rows := v.rows
	if open {
		rows = v.unended
	}
	var found []*Manifest
	for _, r := range rows {
		if fits(r.m) {
			found = append(found, r.m)
		}
	}
	return found
}

// seen applies a write that the watch delivered.
func (s *Store) seen(id schema.BatchID, data []byte, revision uint64) {
	m, err := decode(data)
	if err != nil || m.ID != id {
		s.log.Error("a journal's manifest cannot be read; it is skipped", "journal_id", id, "revision", revision, "error", err)
		return
	}
	s.view.put(m, revision)
	for _, f := range s.view.watchers.Of(string(m.ID)) {
		f(m)
	}
}

// Watch calls f with each manifest of these tenants' journals that any process writes from now on, until
// stop is called. Of writes in quick succession, f may see only the last. Calls of f are sequential, on
// one goroutine; f must not block or change the manifest, and may still run when stop returns.
func (s *Store) Watch(of schema.Tenants, f func(*Manifest)) (stop func()) {
	return s.view.watchers.Add("", ofTenants(of, f))
}

// WatchOne is [Store.Watch] for one journal. Writes of other journals cost nothing, regardless of the
// number of watchers.
func (s *Store) WatchOne(of schema.Tenants, id schema.BatchID, f func(*Manifest)) (stop func()) {
	return s.view.watchers.Add(string(id), ofTenants(of, f))
}

// ofTenants returns a function that calls f for journals of these tenants only.
func ofTenants(of schema.Tenants, f func(*Manifest)) func(*Manifest) {
	return func(m *Manifest) {
		if m.of(of) {
			f(m)
		}
	}
}

// Each calls f with every journal of these tenants in this process's view. f must not block, or change or
// keep the manifest.
func (s *Store) Each(of schema.Tenants, f func(*Manifest)) {
	s.view.mu.RLock()
	defer s.view.mu.RUnlock()
	f = ofTenants(of, f)
	for _, r := range s.view.rows {
		f(r.m)
	}
}

// List returns a page of the matching journals of these tenants, newest first, and the cursor of the next
// page, or "" on the last page. It reads this process's view: all journals that have not ended, and the
// latest ended ones.
func (s *Store) List(of schema.Tenants, f Filter, cursor string) ([]*Manifest, string) {
	open := len(f.States) > 0 && !slices.Contains(f.States, Ended)
	found := s.view.fitting(open, func(m *Manifest) bool {
		return (cursor == "" || place(m) < cursor) && m.of(of) && (f.Kind == "" || f.Kind == m.Kind) &&
			(len(f.States) == 0 || slices.Contains(f.States, m.State)) && (f.Principal == "" || f.Principal == m.Principal.Name)
	})
	slices.SortFunc(found, func(a, b *Manifest) int { return byAge(b, a) })
	next := ""
	if limit := min(cmp.Or(max(f.Limit, 0), 100), 1000); len(found) > limit {
		found = found[:limit]
		next = place(found[limit-1])
	}
	return cloned(found), next
}

// byAge compares journals by age, older first.
func byAge(a, b *Manifest) int {
	return cmp.Or(cmp.Compare(a.Created.UnixNano(), b.Created.UnixNano()), strings.Compare(string(a.ID), string(b.ID)))
}

// place returns the sort position of a journal as a cursor.
func place(m *Manifest) string {
	return m.Created.UTC().Format(placeTime) + string(m.ID)
}

// placeTime is the time format of a place.
const placeTime = "20060102150405.000000000"

// IsCursor reports whether the text may be a cursor of [Store.List].
func IsCursor(text string) bool {
	if len(text) <= len(placeTime) {
		return false
	}
	_, err := time.Parse(placeTime, text[:len(placeTime)])
	return err == nil
}

// EachOpen calls f with every journal of these tenants that has not ended, in this process's view. f must
// not block, or change or keep the manifest.
func (s *Store) EachOpen(of schema.Tenants, f func(*Manifest)) {
	s.view.mu.RLock()
	defer s.view.mu.RUnlock()
	f = ofTenants(of, f)
	for _, r := range s.view.unended {
		f(r.m)
	}
}

// Owner returns the process that owns, or last owned, a journal of these tenants, according to this
// process's view, and whether the journal has ended. The owner is "" if there was none, or the view does
// not have the journal.
func Owner(s *Store, of schema.Tenants, id schema.BatchID) (owner string, ended bool) {
	m, _, ok := s.view.get(id)
	if !ok || !m.of(of) {
		return "", false
	}
	return m.Owner, m.State == Ended
}

// Owners returns the owners of all journals that have not ended, according to this process's view. They
// may have died.
func Owners(s *Store) map[string]bool {
	owners := make(map[string]bool)
	s.EachOpen(schema.AllTenants(), func(m *Manifest) { owners[m.Owner] = true })
	return owners
}

// Unended returns the matching journals of these tenants that have not ended, oldest first. They may lack
// an owner. It reads this process's view. fits is called with every journal that has not ended; it must
// not block or change the manifest.
func (s *Store) Unended(of schema.Tenants, fits func(*Manifest) bool) []*Manifest {
	found := s.view.fitting(true, func(m *Manifest) bool { return m.of(of) && fits(m) })
	slices.SortFunc(found, byAge)
	return cloned(found)
}

func cloned(ms []*Manifest) []*Manifest {
	for i, m := range ms {
		ms[i] = m.Clone()
	}
	return ms
}
