package issued

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/store/keytable"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Options configure the keys. Conn and Log are required.
type Options struct {
	Conn *bus.Conn
	// Member reports whether a set contains a tool. If nil, all sets are empty.
	Member scope.Member
	// Configured returns the configured keys, which are listed with the others. If nil, there are none.
	Configured func() []authn.Known
	// Reserved returns the reason why no key can have a name, or "". If nil, all names are free.
	Reserved func(name string) string
	// Tenants is the section tenants. If nil, keys of every tenant can be created.
	Tenants *tenants.Book
	Log     *slog.Logger
}

const (
	// askEvery and askBurst limit the rate of queries for unknown keys.
	askEvery = 100 * time.Millisecond
	askBurst = 20
	// openFor limits the time for which a start waits for the tables, because NATS does not answer
	// requests that its permissions deny.
	openFor = 10 * time.Second
	// openFirst is the wait before the first retry of opening the tables, and openEvery the longest.
	openFirst = time.Second
	openEvery = 10 * time.Second
)

// askFor limits the time of a query for an unknown key. Tests raise it.
var askFor = 2 * time.Second

// Keys are the keys created through the API. It is safe for concurrent use. A nil *Keys has none.
type Keys struct {
	o      Options
	stored atomic.Pointer[keytable.Table] // nil until it is open
	fault  error                          // the error of opening them at the start
	mu     sync.RWMutex
	seen   map[string]*entry // keys used at this process, by id
	sets   sets
	asks   *rate.Limiter
	asked  singleflight.Group // by id
	stop   context.CancelFunc
	work   sync.WaitGroup
}

// identity is the prefix of a key id in the identity of its principal.
const identity = "key\x00"

// entry is the principal of a key. Except for the last use, it is never changed.
type entry struct {
	revision  uint64 // of the key when the entry was created
	principal schema.Principal
	used      atomic.Int64 // minute of the last use
}

// Open opens the keys. If NATS has no table for them, because `callyard init` did not run since an
// update, or if NATS is unavailable, there are none and none can be created until the table can be
// opened.
func Open(ctx context.Context, o Options) *Keys {
	k := &Keys{o: o, seen: make(map[string]*entry), asks: rate.NewLimiter(rate.Every(askEvery), askBurst)}
	if k.fault = k.open(ctx); k.fault != nil {
		o.Log.Warn("API keys that were created over the API are not available at this front door: run `callyard init`, and update NATS to the permissions of this version", "error", k.fault)
	}
	running, stop := context.WithCancel(context.Background())
	k.stop = stop
	k.work.Go(func() {
		if k.openLater(running) {
			k.noteUses(running)
		}
	})
	return k
}

// open opens both tables or none.
func (k *Keys) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openFor)
	defer cancel()
	t, err := keytable.Open(ctx, k.o.Conn)
	if err == nil {
		k.stored.Store(t)
	}
	return err
}

// openLater retries until the tables are open. It returns false if ctx ends first.
func (k *Keys) openLater(ctx context.Context) bool {
	for wait := openFirst; k.stored.Load() == nil; wait = min(2*wait, openEvery) {
		if !sleep.For(wait, ctx.Done()) {
			return false
		}
		if err := k.open(ctx); err != nil {
			k.o.Log.Debug("the tables of API keys cannot be opened", "error", err)
			continue
		}
		k.o.Log.Info("API keys that were created over the API are available")
	}
	return true
}

// table returns the table of keys, or nil if it is not open yet.
func (k *Keys) table() *keytable.Table { return k.stored.Load() }

// Close stores the last uses and ends the goroutines of Open.
func (k *Keys) Close() {
	if k == nil || k.stop == nil {
		return
	}
	k.stop()
	k.work.Wait()
	if t := k.table(); t != nil {
		t.Close()
	}
}

// Authenticate returns the principal of a credential for which [Looks] is true. The error is of
// KindUnauthenticated, or of KindUnavailable if the store is unavailable and the key is unknown at
// this process.
func (k *Keys) Authenticate(ctx context.Context, credential string) (schema.Principal, error) {
	id, ok := parse(credential)
	if !ok {
		return schema.Principal{}, schema.Errorf(schema.KindUnauthenticated, "The API key is damaged: its checksum is wrong. Copy the complete key again.")
	}
	if k.table() == nil {
		return schema.Principal{}, k.away(k.fault)
	}
	sum, now := sha256.Sum256([]byte(credential)), time.Now()
	row, revision, ok := k.table().Get(schema.AllTenants(), id)
	if !ok || !matches(&row, &sum, now) {
		if err := k.refresh(ctx, id); err != nil {
			return schema.Principal{}, err
		}
		if row, revision, ok = k.table().Get(schema.AllTenants(), id); !ok || !matches(&row, &sum, now) {
			return schema.Principal{}, schema.Errorf(schema.KindUnauthenticated, "The API key is unknown, or was revoked. Ask the operator for a new one.")
		}
	}
	if ended(&row, now) {
		return schema.Principal{}, expired(&row)
	}
	e := k.entry(&row, revision)
	if minute := now.Unix() / 60; e.used.Load() < minute {
		e.used.Store(minute)
	}
	return e.principal, nil
}

// Holder returns the principal of a credential that was accepted before, if it is still valid as far as
// this process knows. Unlike [Keys.Authenticate] it asks no store and counts as no use.
func (k *Keys) Holder(credential string) (who schema.Principal, ok bool) {
	id, ok := parse(credential)
	if !ok || !k.Some() {
		return who, false
	}
	sum, now := sha256.Sum256([]byte(credential)), time.Now()
	row, revision, ok := k.table().Get(schema.AllTenants(), id)
	if !ok || ended(&row, now) || !matches(&row, &sum, now) {
		return who, false
	}
	return k.entry(&row, revision).principal, true
}

// matches reports whether the digest belongs to the secret, or to a former secret within its grace
// period.
func matches(row *keytable.Key, sum *[sha256.Size]byte, now time.Time) bool {
	if subtle.ConstantTimeCompare(row.Hash[:], sum[:]) == 1 {
		return true
	}
	for i := range row.Former {
		if now.Before(row.Former[i].Until.Time()) && subtle.ConstantTimeCompare(row.Former[i].Hash[:], sum[:]) == 1 {
			return true
		}
	}
	return false
}

// entry returns the principal of a key.
func (k *Keys) entry(row *keytable.Key, revision uint64) *entry {
	k.mu.RLock()
	last := k.seen[row.ID]
	k.mu.RUnlock()
	if last != nil && last.revision == revision {
		return last
	}
	e := &entry{revision: revision, principal: schema.Principal{Name: row.Name, Owner: row.Owner, Groups: row.Groups, Tenant: row.Tenant, Grant: &scope.Grant{
		Scopes: scopesOf(k.sets.of(ScopesOf(row)), row), Tools: row.Tools, Member: k.o.Member, ID: identity + row.ID, Role: scope.Role(row.Role),
	}}}
	k.mu.Lock()
	defer k.mu.Unlock()
	if last := k.seen[row.ID]; last != nil {
		e.used.Store(last.used.Load())
	}
	k.seen[row.ID] = e
	return e
}

// sets are shared sets of scopes. Most keys have one of a few sets, and separate copies would take
// memory. It is safe for concurrent use.
type sets struct {
	mu sync.Mutex
	by map[string]scope.Set
}

// maxSets limits the number of shared sets. When it is reached, all are dropped and created again.
const maxSets = 1000

func (s *sets) of(list []string) scope.Set {
	name := strings.Join(list, "\x00")
	s.mu.Lock()
	defer s.mu.Unlock()
	set, ok := s.by[name]
	if !ok {
		if s.by == nil || len(s.by) >= maxSets {
			s.by = make(map[string]scope.Set)
		}
		set = scope.Of(list)
		s.by[name] = set
	}
	return set
}

// ScopesOf returns the scopes of a key: those of its role, or the listed ones.
func ScopesOf(row *keytable.Key) []string {
	if row.Role != "" {
		return scope.Role(row.Role).Scopes()
	}
	return row.Scopes
}

// scopesOf returns the scopes with set names resolved as the key requires.
func scopesOf(s scope.Set, row *keytable.Key) scope.Set {
	if row.OwnSets {
		return s.Naming(row.Tenant)
	}
	return s
}

// refresh reads a key from the store that is unknown at this process or has another secret there. A
// key created at another front door moments ago is known from then on. The error is of
// KindUnavailable.
func (k *Keys) refresh(ctx context.Context, id string) error {
	if err := k.o.Conn.Ready(); err != nil {
		return k.away(err)
	}
	answer := k.asked.DoChan(id, func() (any, error) {
		if !k.asks.Allow() { // a client that sends many wrong keys must not load the store
			return nil, k.away(errAskedOften)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askFor) // several requests share the result
		defer cancel()
		if _, err := k.table().Fresh(ctx, schema.AllTenants(), id); err != nil && !errors.Is(err, bus.ErrNotFound) {
			return nil, k.away(err)
		}
		return nil, nil
	})
	select {
	case got := <-answer:
		return got.Err
	case <-ctx.Done():
		return k.away(ctx.Err())
	}
}

// errAskedOften means that the store was not queried because of the limit, so it is unknown whether
// a key is valid.
var errAskedOften = errors.New("too many keys are asked for")

func (k *Keys) away(err error) error {
	k.o.Log.Debug("the store of API keys cannot be asked", "error", err) // the caller is not authenticated yet and must not see the error
	return schema.Errorf(schema.KindUnavailable, "The API key is not known here, and the store of API keys cannot be asked at the moment. Try again later.").RetryableAfter(time.Second)
}

func ended(row *keytable.Key, now time.Time) bool { return now.Unix() >= int64(row.Expires) }

func expired(row *keytable.Key) error {
	return schema.Errorf(schema.KindUnauthenticated, "The API key %q expired on %s. Ask the operator for a new one.", row.Name, row.Expires.Time().Format(time.DateOnly))
}

// Valid returns whether the key with that name exists, and an error of KindUnauthenticated if its
// calls may not run.
func (k *Keys) Valid(name string) (known bool, err error) {
	if !k.Some() { // this runs for each call, so do not hash the name without need
		return false, nil
	}
	row, _, ok := k.table().Get(schema.AllTenants(), IDOf(name))
	if !ok || row.Name != name {
		return false, nil
	}
	if ended(&row, time.Now()) {
		return true, expired(&row)
	}
	return true, nil
}

// Grant returns the present permissions of the key of a principal, or nil if there is no such key.
func (k *Keys) Grant(p *schema.Principal) schema.Grant {
	if !k.Some() {
		return nil
	}
	row, revision, ok := k.table().Get(schema.OnlyTenant(p.Tenant), IDOf(p.Name))
	if !ok || row.Name != p.Name {
		return nil
	}
	return k.entry(&row, revision).principal.Grant
}

// Limits returns the limits of a principal's key. It runs for every call, so it takes the id from
// the grant if there is one, instead of hashing the name.
func (k *Keys) Limits(p *schema.Principal) (limits scope.Limits) {
	if !k.Some() {
		return limits
	}
	id, ok := strings.CutPrefix(p.Identity(), identity)
	switch {
	case p.Grant == nil: // for example of a call that waited
		id = IDOf(p.Name)
	case !ok: // not a key created through the API
		return limits
	}
	if row, _, ok := k.table().Get(schema.OnlyTenant(p.Tenant), id); ok && row.Name == p.Name {
		limits = row.Bounds()
	}
	return limits
}

// Some reports whether any keys were created.
func (k *Keys) Some() bool { return k != nil && k.table() != nil && k.table().Some() }
