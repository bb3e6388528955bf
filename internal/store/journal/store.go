package journal

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/internal/tenants/retention"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Options configures a store. Zero fields select their defaults.
type Options struct {
	// MaxBytes limits each of the streams on disk; 0 means no limit. A full stream refuses
	// writes and never drops data.
	MaxBytes int64
	// MaxEnded limits the ended journals that are kept in memory for lists (default 10,000).
	MaxEnded int
	// Lease is the lifetime of a claim without renewal, in whole seconds (default 10 s). It is
	// renewed three times in that time.
	Lease time.Duration
	// LostKey reports whether the entry of a key, by its [KeyHash], was lost with a damaged data
	// folder. If nil, none was.
	LostKey func(hash string) bool
	// DataKeys encrypts arguments and results. If nil, they are not encrypted.
	DataKeys *datakey.Ring
	// Retention gives the tenants whose payloads are deleted before they expire in the streams.
	Retention retention.Periods
	// Log receives errors that cannot be returned to a caller. Required.
	Log *slog.Logger
}

const (
	defaultMaxEnded = 10_000
	defaultLease    = 10 * time.Second

	keepResults = 72 * time.Hour
	// keepManifests is how long a journal is listed after its end.
	keepManifests = 30 * 24 * time.Hour
	// maxInline is the maximum size of arguments or a result inside a record, in bytes.
	maxInline = 256 << 10
	// maxTries limits the attempts at a change that conflicts with other writers.
	maxTries = 64
	// lookFor is how long a writer that lost the reply checks whether its write was stored.
	lookFor = 2 * time.Second
	// keepObjects is the additional retention of objects compared to results, because they are
	// stored before the record that refers to them.
	keepObjects = time.Hour
	// keepDeleted is how long a deletion is visible to watchers.
	keepDeleted = time.Minute
)

// Store gives access to the journals of one installation.
type Store struct {
	// Payloads deletes payloads after their retention period.
	Payloads *Payloads

	logs         *logs
	manifests    manifests
	leases       leases
	keys         keys
	objects      objects
	view         *view
	watch        *bus.StreamWatch
	lease        time.Duration
	most, inline int // maximum size of a message and of an inline body, in bytes
	log          *slog.Logger
	born         time.Time
	space        spaceGuard
	recent       recent
	lostKey      func(hash string) bool
	secret       []byte
	ring         *datakey.Ring
}

// Open opens the journals on a connection, creates missing streams, and reads the manifests; ctx bounds
// that. The caller still owns the connection, which should not be the one that carries calls.
func Open(ctx context.Context, conn *bus.Conn, o Options) (*Store, error) {
	st, err := openStreams(ctx, conn, o)
	if err != nil {
		return nil, err
	}
	s := &Store{
		logs: st.logs, manifests: st.manifests, leases: st.leases, keys: st.keys, objects: st.objects, view: newView(cmp.Or(o.MaxEnded, defaultMaxEnded)),
		lease: max(cmp.Or(o.Lease, defaultLease).Truncate(time.Second), time.Second), most: min(maxPacket, maxMessage(st.logs.calls)), log: o.Log, born: time.Now(), lostKey: o.LostKey, ring: o.DataKeys,
	}
	s.Payloads = &Payloads{s}
	s.inline = min(maxInline, s.most/2)
	s.view.retention, s.view.keepPayloads = o.Retention, st.logs.keepResults()
	if s.view.keepPayloads > 0 {
		s.view.keepPayloads += keepObjects
	}
	if s.watch, err = s.manifests.watch(ctx, s.seen); err != nil {
		return nil, err
	}
	if s.secret, err = s.findSecret(ctx); err != nil {
		s.watch.Close()
		return nil, err
	}
	return s, nil
}

// Close stops the watch and waits for it. Writers and owners must be closed first.
func (s *Store) Close() { s.watch.Close() }

// MaxLife returns the maximum time until a new journal must expire: half of the retention of results, so
// that a rebuild finds each of them. 0 means no limit.
func (s *Store) MaxLife() time.Duration { return s.logs.keepResults() / 2 }

// Create stores the manifest of a new journal in state receiving. It sets ID, Created and State.
// [schema.KindConflict] means that the id is already used. While NATS stores no calls, it stores
// nothing and returns [schema.KindUnavailable].
func (s *Store) Create(ctx context.Context, m *Manifest) error {
	if m.ID == "" {
		m.ID = schema.BatchID(schema.NewID(string(m.Kind)))
	}
	if m.Created.IsZero() {
		m.Created = time.Now().UTC()
	}
	m.State = cmp.Or(m.State, Receiving)
	if err := s.logs.writable(LogCalls); err != nil { // else an empty journal would wait for calls that cannot come
		return unavailable(err)
	}
	wrong := ""
	switch {
	case !bus.PlainToken(m.ID):
		wrong = "has an invalid id"
	case m.Kind != Batch && m.Kind != Lane:
		wrong = "has no kind"
	case m.State != Receiving, m.Epoch != 0, !m.Sealed.IsZero():
		wrong = "does not begin at its beginning"
	case m.Expires.IsZero():
		wrong = "never expires"
	}
	if wrong != "" {
		return schema.Errorf(schema.KindInternal, "The journal %s; it was not created.", wrong)
	}
	if life := s.MaxLife(); life > 0 && m.Expires.Sub(m.Created) > life {
		return schema.Errorf(schema.KindInvalidRequest, "Durable calls can take at most %s here, because results are stored for twice that time; request an earlier end.", life)
	}
	m.Secret, m.Write = s.secret, rand.Text()
	data, err := json.Marshal(m) //nolint:gosec // the secret of ids is kept with the records that they name
	if err != nil {
		return fmt.Errorf("encoding the manifest: %w", err)
	}
	revision, err := s.manifests.put(ctx, m.ID, data, 0, 0)
	if err != nil {
		mine, at, again := s.manifests.landed(ctx, m.ID, []string{m.Write})
		switch {
		case mine != nil:
			revision = at
		case errors.Is(err, bus.ErrConflict):
			return schema.Errorf(schema.KindConflict, "Journal %s already exists.", m.ID)
		default:
			return unavailable(errors.Join(err, again))
		}
	}
	s.view.put(m.Clone(), revision)
	return nil
}

// Begin is Create followed by Write. It is cheaper, because no other process can have written to the
// journal yet.
func (s *Store) Begin(ctx context.Context, m *Manifest) (*Writer, error) {
	if err := s.Create(ctx, m); err != nil {
		return nil, err
	}
	t, err := s.attach(ctx, m.ID, LogCalls, 0, true)
	if err != nil {
		return nil, appendFault(m.ID, err)
	}
	t.run()
	return &Writer{s: s, of: schema.OnlyTenant(m.Principal.Tenant), tenant: m.Principal.Tenant, id: m.ID, t: t}, nil
}

// Get returns the manifest of a journal of the tenant, or [schema.KindNotFound]. It may be stale.
func (s *Store) Get(ctx context.Context, tenant schema.TenantID, id schema.BatchID) (*Manifest, error) {
	m, _, err := s.read(ctx, schema.OnlyTenant(tenant), id, bus.Either)
	return m, err
}

// Find returns a journal of these tenants. Errors: KindNotFound; KindUnavailable.
func Find(ctx context.Context, s *Store, of schema.Tenants, id schema.BatchID) (*Manifest, error) {
	return manifestOf(ctx, s, of, id)
}

// manifestOf returns a journal of these tenants, from the view if it is there. Looking up a journal of another
// tenant takes as long as looking up one that does not exist.
func manifestOf(ctx context.Context, s *Store, of schema.Tenants, id schema.BatchID) (*Manifest, error) {
	if m, _, ok := s.view.get(id); ok && m.of(of) {
		return m, nil
	}
	m, _, err := s.read(ctx, of, id, bus.Either)
	return m, err
}

func (s *Store) read(ctx context.Context, of schema.Tenants, id schema.BatchID, from bus.Source) (*Manifest, uint64, error) {
	sought := id
	if m, _, ok := s.view.get(id); ok && !m.of(of) {
		sought += "0" // no journal has this id, so the answer takes as long as for one that does not exist
	}
	data, revision, err := s.manifests.get(ctx, sought, from)
	if errors.Is(err, bus.ErrNotFound) {
		return nil, 0, notFound(id)
	}
	if err != nil {
		return nil, 0, unavailable(err)
	}
	m, err := decode(data)
	if err != nil {
		return nil, 0, damaged(id, err)
	}
	if m.Deleted || !m.of(of) {
		return nil, 0, notFound(id)
	}
	return m, revision, nil
}

func decode(data []byte) (*Manifest, error) {
	m := new(Manifest)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("decoding the manifest: %w", err)
	}
	switch m.State {
	case Receiving, Sealed, Running, Canceling, Ended:
		return m, nil
	}
	return nil, fmt.Errorf("this version does not know the state of the journal")
}

// Change reads the manifest of a journal of the tenant, calls f to change it, and stores it. If another
// process wrote it in the meantime, Change starts over, so f may be called several times. An error
// of f is returned unchanged, once f has seen the current manifest. Change returns the stored
// manifest. After an error of [schema.KindUnavailable], the change may have happened or may still
// happen.
func (s *Store) Change(ctx context.Context, tenant schema.TenantID, id schema.BatchID, f func(*Manifest) error) (*Manifest, error) {
	return s.change(ctx, schema.OnlyTenant(tenant), id, f)
}

func (s *Store) change(ctx context.Context, of schema.Tenants, id schema.BatchID, f func(*Manifest) error) (*Manifest, error) {
	// Use the view to save a read: if it is stale, the write fails.
	now, revision, hint := s.view.get(id)
	hint = hint && now.of(of)
	var err error
	if !hint {
		if now, revision, err = s.read(ctx, of, id, bus.Leader); err != nil {
			return nil, err
		}
	}
	var mine []string
	for range maxTries {
		next := now.Clone()
		if err = f(next); err == nil {
			err = allowed(now, next)
		}
		if err != nil {
			if !hint {
				return nil, err
			}
			hint = false // f may have refused a stale manifest
			if now, revision, err = s.read(ctx, of, id, bus.Leader); err != nil {
				return nil, err
			}
			continue
		}
		next.Write = rand.Text()
		mine = append(mine, next.Write)
		data, err := json.Marshal(next) //nolint:gosec // as in Create
		if err != nil {
			return nil, fmt.Errorf("encoding the manifest: %w", err)
		}
		written, err := s.manifests.put(ctx, id, data, revision, next.keep())
		if err == nil {
			s.view.put(next, written)
			return next.Clone(), nil
		}
		if errors.Is(err, bus.ErrRefused) {
			return nil, unavailable(err)
		}
		hint = false
		found, at, again := s.manifests.landed(ctx, id, mine)
		if found != nil {
			s.view.put(found, at)
			return found.Clone(), nil
		}
		if !errors.Is(err, bus.ErrConflict) || again != nil {
			return nil, unavailable(errors.Join(err, again))
		}
		if now, revision, err = s.read(ctx, of, id, bus.Leader); err != nil {
			return nil, err
		}
	}
	return nil, schema.Errorf(schema.KindConflict, "Too many concurrent changes of journal %s; try again.", id).RetryableAfter(0)
}

// keep returns the remaining retention of the manifest, 0 for no limit.
func (m *Manifest) keep() time.Duration {
	switch {
	case m.Deleted:
		return keepDeleted
	case m.State == Ended:
		return max(keepManifests-time.Since(m.Ended), time.Second) // later writes do not extend it
	}
	return 0
}

// landed reads the manifest and returns it if one of the marked writes created it. It may outlive ctx by
// a moment, because a caller that gave up must still learn that its write was stored.
func (s manifests) landed(ctx context.Context, id schema.BatchID, marks []string) (*Manifest, uint64, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookFor)
	defer cancel()
	data, revision, err := s.get(ctx, id, bus.Leader)
	if err != nil {
		return nil, 0, err
	}
	m, err := decode(data)
	if err != nil {
		return nil, 0, err
	}
	if slices.Contains(marks, m.Write) {
		return m, revision, nil
	}
	return nil, revision, nil
}

// PurgeCalls deletes the calls and intents of an ended journal of the tenant. The journal cannot be
// claimed any more. It is idempotent; until it succeeds, [Payloads.WithCalls] returns the journal.
func (s *Store) PurgeCalls(ctx context.Context, tenant schema.TenantID, id schema.BatchID) error {
	if err := s.Payloads.mark(ctx, tenant, id, "calls", func(m *Manifest) []*bool { return []*bool{&m.Purged} }); err != nil {
		return err
	}
	if err := errors.Join(s.logs.purge(ctx, id, LogCalls), s.logs.purge(ctx, id, LogIntents)); err != nil {
		return unavailable(err)
	}
	return s.Payloads.mark(ctx, tenant, id, "calls", func(m *Manifest) []*bool { return []*bool{&m.CallsDeleted} })
}

// Delete deletes all data of an ended journal of the tenant.
func (s *Store) Delete(ctx context.Context, tenant schema.TenantID, id schema.BatchID) error {
	if err := s.PurgeCalls(ctx, tenant, id); err != nil {
		return err
	}
	if err := errors.Join(s.logs.purge(ctx, id, LogResults), s.objects.purge(ctx, id)); err != nil {
		return unavailable(err)
	}
	_, err := s.Change(ctx, tenant, id, func(m *Manifest) error {
		m.Deleted = true
		return nil
	})
	return err
}
