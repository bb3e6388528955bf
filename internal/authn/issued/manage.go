package issued

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/keytable"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// Lasts is the default lifetime of a key, and MostLasts the maximum.
	Lasts     = 90 * 24 * time.Hour
	MostLasts = 5 * 366 * 24 * time.Hour
	// Grace is the default time for which the previous secret stays valid after a rotation, and
	// MostGrace the maximum.
	Grace     = 24 * time.Hour
	MostGrace = 7 * 24 * time.Hour

	mostKeys   = 20_000
	mostFormer = 4
	// mostOfTenant limits the number of keys of a tenant other than the default one, so that no
	// tenant uses up the space of others.
	mostOfTenant = 2000
	// mostRow limits the stored size of a key, in bytes.
	mostRow = 16 << 10
)

// ErrChanged means that the key has changed since the caller read it.
var ErrChanged = errors.New("issued: the key has changed")

// Key is a key and its origin.
type Key struct {
	keytable.Key
	// Configured means that the key is in the configuration and cannot be changed here.
	Configured bool
	// Revision increases with each change of a key created through the API.
	Revision uint64
	// LastUsed is exact to the minute. Zero means never or unknown, as for configured keys.
	LastUsed time.Time
}

// Settings holds the requested properties of a key.
type Settings struct {
	Name, Owner           string
	Role                  scope.Role // if set, its scopes replace Scopes
	Groups, Scopes, Tools []string
	Note                  string
	Limits                scope.Limits
	Tenant                schema.TenantID // if empty, that of the creator
	Expires               time.Time       // if zero, after [Lasts]

	ownSets bool // see [keytable.Key]
}

// nameSets decides which sets the set names in the scopes of a key refer to. For the creator they
// are the sets of its tenant. A creator that is itself limited to sets gives them with the same
// meaning. Scopes that stay keep their meaning, whoever changes the rest of the key.
func (w *Settings) nameSets(by *schema.Principal, had *Settings) {
	if had != nil && w.Role == had.Role && slices.Equal(w.Scopes, had.Scopes) {
		w.ownSets = had.ownSets
		return
	}
	w.ownSets = false
	if by.Tenant.Is(schema.DefaultTenant) || !by.Tenant.Is(w.Tenant) {
		return
	}
	grant, limited := by.Grant.(*scope.Grant)
	w.ownSets = !limited || grant.Scopes.NamesOwn() || grant.Scopes.CallsAll()
}

// scopes returns the requested scopes.
func (w *Settings) scopes() scope.Set {
	if w.Role != "" {
		return scope.Of(w.Role.Scopes())
	}
	if w.ownSets {
		return scope.Of(w.Scopes).Naming(w.Tenant)
	}
	return scope.Of(w.Scopes)
}

// List returns the keys that by may see, by name.
func (k *Keys) List(by *schema.Principal) []Key {
	of := scope.TenantsOf(by, scope.Admin)
	all := slices.DeleteFunc(k.configured(), func(key Key) bool { return !of.Include(key.Tenant) })
	if k != nil && k.table() != nil {
		for _, row := range k.table().All(of) {
			if key, ok := k.find(of, row.ID); ok {
				all = append(all, key)
			}
		}
	}
	slices.SortFunc(all, func(a, b Key) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID)) })
	return all
}

// Get returns a key by its id. The error is of KindNotFound, also for a key that by may not see.
func (k *Keys) Get(by *schema.Principal, id string) (Key, error) {
	of := scope.TenantsOf(by, scope.Admin)
	if key, ok := k.find(of, id); ok {
		return key, nil
	}
	for _, key := range k.configured() {
		if key.ID == id && of.Include(key.Tenant) {
			return key, nil
		}
	}
	return Key{}, schema.Errorf(schema.KindNotFound, "There is no API key with this id. GET /keys lists the keys.")
}

func (k *Keys) find(of schema.Tenants, id string) (Key, bool) {
	if k == nil || k.table() == nil {
		return Key{}, false
	}
	row, revision, ok := k.table().Get(of, id)
	if !ok {
		return Key{}, false
	}
	return k.told(&row, revision), true
}

func (k *Keys) told(row *keytable.Key, revision uint64) Key {
	return Key{Key: *row, Revision: revision, LastUsed: k.lastUsed(row)}
}

// configured returns the configured keys. They may do everything, or what their role allows.
func (k *Keys) configured() (all []Key) {
	if k == nil || k.o.Configured == nil {
		return nil
	}
	for _, known := range k.o.Configured() {
		p := known.Principal
		role, scopes := scope.Role(""), scope.All()
		if grant, ok := p.Grant.(*scope.Grant); ok {
			role, scopes = grant.Role, nil
		}
		all = append(all, Key{Configured: true, Key: keytable.Key{
			ID: IDOf(p.Name), Name: p.Name, Owner: p.Owner, Groups: p.Groups, Tenant: p.Tenant, Role: string(role), Scopes: scopes, Limits: keytable.LimitsOf(known.Limits), Expires: keytable.At(known.Expires),
		}})
	}
	return all
}

// Create creates a key for by and returns it with its secret, which is not stored. Errors are of
// KindInvalidRequest for invalid properties, KindForbidden for more than by has, KindConflict if
// the name is taken, and KindUnavailable if the key cannot be stored.
func (k *Keys) Create(ctx context.Context, by *schema.Principal, w Settings) (Key, string, error) {
	now := time.Now().UTC().Truncate(time.Second)
	w.Tenant = cmp.Or(w.Tenant, by.Tenant)
	if w.Owner == "" && by.Grant != nil { // the key acts as its creator, who may not act as others
		w.Owner = cmp.Or(by.Owner, by.Name)
	}
	if err := k.check(&w, now); err != nil {
		return Key{}, "", err
	}
	if err := inTenant(&w); err != nil {
		return Key{}, "", err
	}
	if err := k.storable(); err != nil {
		return Key{}, "", err
	}
	w.nameSets(by, nil)
	if err := k.mayGive(by, &w, nil); err != nil {
		return Key{}, "", err
	}
	if k.o.Tenants.Check(w.Tenant) != nil { // otherwise the key would be refused everywhere
		return Key{}, "", invalid([]schema.Fault{{Pointer: "/tenant", Message: "is not in the section tenants of the configuration; add it there and restart the front doors"}})
	}
	id := IDOf(w.Name)
	if _, there := k.find(schema.AllTenants(), id); there {
		return Key{}, "", taken(w.Name, id)
	}
	if err := k.space(w.Tenant); err != nil {
		return Key{}, "", err
	}
	secret := newSecret(id)
	row := keytable.Key{ID: id, Name: w.Name, Tenant: w.Tenant, Hash: sha256.Sum256([]byte(secret)), Created: keytable.At(now), CreatedBy: by.Name}
	w.into(&row, by, now)
	if err := checkSize(&row); err != nil {
		return Key{}, "", err
	}
	revision, err := k.table().Create(ctx, row)
	if errors.Is(err, bus.ErrConflict) {
		return Key{}, "", taken(w.Name, id)
	}
	if err != nil {
		return Key{}, "", notStored(err)
	}
	return k.told(&row, revision), secret, nil
}

// space returns an error if a tenant can have no more keys. It does not reveal the number of keys
// of others.
func (k *Keys) space(tenant schema.TenantID) error {
	all, own := k.table().All(schema.AllTenants()), 0
	for i := range all {
		if all[i].Tenant.Is(tenant) {
			own++
		}
	}
	if own >= mostOfTenant && !tenant.Is(schema.DefaultTenant) {
		return schema.Errorf(schema.KindConflict, "There are %d API keys of the tenant, which is the limit; revoke one first.", own)
	}
	if len(all) >= mostKeys {
		return schema.Errorf(schema.KindConflict, "There can be no more API keys; revoke one first.")
	}
	return nil
}

// checkSize returns an error if a key is too large to be stored. Each field and the total size are limited.
func checkSize(row *keytable.Key) error {
	body, err := json.Marshal(row)
	if err != nil {
		return notStored(err)
	}
	if len(body) > mostRow {
		return schema.Errorf(schema.KindInvalidRequest, "The API key takes %d bytes, more than %d; give it fewer groups, scopes or tools.", len(body), mostRow)
	}
	return nil
}

func taken(name, id string) error {
	return schema.Errorf(schema.KindConflict, "There is an API key with the name %q already (id %s). If it is yours and you did not get its secret, rotate it.", name, id)
}

// into writes the requested properties to the row.
func (w *Settings) into(row *keytable.Key, by *schema.Principal, now time.Time) {
	row.Role, row.Owner, row.Groups, row.Scopes, row.OwnSets, row.Tools, row.Note, row.Limits, row.Expires = string(w.Role), w.Owner, w.Groups, w.Scopes, w.ownSets, w.Tools, w.Note, keytable.LimitsOf(w.Limits), keytable.At(w.Expires)
	row.Changed, row.ChangedBy = keytable.At(now), by.Name
}

// settingsOf returns the current properties of a key.
func settingsOf(row *keytable.Key) Settings {
	return Settings{Name: row.Name, Tenant: row.Tenant, Owner: row.Owner, Role: scope.Role(row.Role), Groups: row.Groups, Scopes: row.Scopes, Tools: row.Tools, Note: row.Note, Limits: row.Bounds(), Expires: row.Expires.Time(), ownSets: row.OwnSets}
}

// Update changes a key that has the revision. change receives the current properties and sets the
// new ones; the name and the tenant stay. Errors are [ErrChanged] for another revision,
// KindNotFound, KindConflict for a configured key, and those of [Keys.Create].
func (k *Keys) Update(ctx context.Context, by *schema.Principal, id string, revision uint64, change func(*Settings)) (Key, error) {
	now := time.Now().UTC().Truncate(time.Second)
	return k.replace(ctx, by, id, revision, func(row *keytable.Key) error {
		was, w := settingsOf(row), settingsOf(row)
		change(&w)
		w.Name, w.Tenant = row.Name, row.Tenant
		if err := k.check(&w, now); err != nil {
			return err
		}
		w.nameSets(by, &was)
		if err := k.mayGive(by, &w, &was); err != nil {
			return err
		}
		w.into(row, by, now)
		return nil
	})
}

// Rotate gives a key that has the revision a new secret and returns it. The previous secret stays
// valid for grace. expires is the new expiry; zero keeps the old one. Errors are those of
// [Keys.Update].
func (k *Keys) Rotate(ctx context.Context, by *schema.Principal, id string, revision uint64, grace time.Duration, expires time.Time) (key Key, secret string, err error) {
	now := time.Now().UTC().Truncate(time.Second)
	secret = newSecret(id)
	key, err = k.replace(ctx, by, id, revision, func(row *keytable.Key) error {
		w := settingsOf(row)
		if !expires.IsZero() {
			w.Expires = expires
		}
		if err := k.check(&w, now); err != nil {
			return err
		}
		if err := k.mayGive(by, &w, nil); err != nil { // the principal that rotates a key knows its secret afterwards
			return err
		}
		former := formerOf(row, now, grace)
		if len(former) > mostFormer {
			return schema.Errorf(schema.KindConflict, "%d former secrets of the key are still valid, which is the limit; wait for one of them to end, or revoke the key.", mostFormer)
		}
		w.into(row, by, now)
		row.Former, row.Hash, row.Rotated = former, sha256.Sum256([]byte(secret)), keytable.At(now)
		return nil
	})
	if err != nil {
		return Key{}, "", err
	}
	return key, secret, nil
}

// formerOf returns the secrets that stay valid next to the new one, at most for grace. A shorter
// grace also shortens the time of earlier secrets.
func formerOf(row *keytable.Key, now time.Time, grace time.Duration) (former []keytable.Secret) {
	if grace <= 0 {
		return nil
	}
	until := keytable.At(now.Add(grace))
	for _, s := range row.Former {
		if now.Before(s.Until.Time()) {
			former = append(former, keytable.Secret{Hash: s.Hash, Until: min(s.Until, until)})
		}
	}
	return append(former, keytable.Secret{Hash: row.Hash, Until: until})
}

// replace changes the row of a key that has the revision.
func (k *Keys) replace(ctx context.Context, by *schema.Principal, id string, revision uint64, change func(*keytable.Key) error) (Key, error) {
	if err := k.changeable(by, id); err != nil {
		return Key{}, err
	}
	row, now, ok := k.table().Get(scope.TenantsOf(by, scope.Admin), id)
	if !ok || now != revision {
		return Key{}, ErrChanged
	}
	if err := change(&row); err != nil {
		return Key{}, err
	}
	if err := checkSize(&row); err != nil {
		return Key{}, err
	}
	next, err := k.table().Replace(ctx, row.Tenant, row, revision)
	if err := stored(err); err != nil {
		return Key{}, err
	}
	return k.told(&row, next), nil
}

// Revoke ends a key that has the revision, with all its secrets. Errors are those of [Keys.Update].
// A principal that may manage keys may revoke any key that it sees.
func (k *Keys) Revoke(ctx context.Context, by *schema.Principal, id string, revision uint64) error {
	if err := k.changeable(by, id); err != nil {
		return err
	}
	row, _, ok := k.table().Get(scope.TenantsOf(by, scope.Admin), id)
	if !ok {
		return ErrChanged
	}
	left, err := k.table().Remove(ctx, row.Tenant, id, revision)
	if left != nil {
		k.o.Log.Warn("the last use of a revoked API key cannot be removed", "id", id, "error", left)
	}
	return stored(err)
}

// storable returns an error if keys cannot be stored.
func (k *Keys) storable() error {
	if k == nil || k.table() == nil {
		return schema.Errorf(schema.KindUnavailable, "API keys cannot be stored here: run `callyard init`, and update NATS to the permissions of this version.")
	}
	return nil
}

// changeable returns an error if the key cannot be changed.
func (k *Keys) changeable(by *schema.Principal, id string) error {
	key, err := k.Get(by, id)
	if err != nil {
		return err
	}
	if key.Configured {
		return schema.Errorf(schema.KindConflict, "The API key %q is in the configuration (front_door.keys); change it there.", key.Name)
	}
	return k.storable()
}

func stored(err error) error {
	switch {
	case errors.Is(err, bus.ErrConflict):
		return ErrChanged
	case err != nil:
		return notStored(err)
	}
	return nil
}

func notStored(err error) error {
	return schema.Errorf(schema.KindUnavailable, "The change of the API key cannot be stored: %w", err).RetryableAfter(0)
}

// mayGive returns nil if the creator of a key has everything that the key gets, and is the person
// that the key acts for. had are the previous properties, which may stay; if nil, the creator will
// know the secret.
func (k *Keys) mayGive(by *schema.Principal, w, had *Settings) error {
	if !scope.TenantsOf(by, scope.Admin).Include(w.Tenant) {
		return schema.Errorf(schema.KindForbidden, "An API key of tenant %q cannot be made with a credential of tenant %q.", w.Tenant, by.Tenant)
	}
	if by.Grant == nil {
		return nil // a configured key, or a front door without keys: everything
	}
	set := w.scopes()
	grant, ok := by.Grant.(interface {
		Gives(*scope.Set, []string) bool
	})
	if !ok || !grant.Gives(&set, w.Tools) {
		return schema.Errorf(schema.KindForbidden, "An API key cannot get scopes or tools that your own credential does not have.")
	}
	if !w.Limits.Within(k.Limits(by)) {
		return schema.Errorf(schema.KindForbidden, "An API key cannot get wider limits than your own credential has; give it limits within yours.")
	}
	// Credentials of servers and the two-person rule identify the person by this name.
	who := cmp.Or(w.Owner, w.Name)
	if who != cmp.Or(by.Owner, by.Name) && (had == nil || who != cmp.Or(had.Owner, had.Name)) {
		return schema.Errorf(schema.KindForbidden, "An API key cannot be made for %q with your credential; use a key of the configuration.", who)
	}
	for _, group := range w.Groups {
		if !slices.Contains(by.Groups, group) && (had == nil || !slices.Contains(had.Groups, group)) {
			return schema.Errorf(schema.KindForbidden, "An API key cannot be put into group %q, which you are not in.", group)
		}
	}
	return nil
}

// reserved returns the reason why no key can have the name, or "".
func (k *Keys) reserved(name string) string {
	if name == authn.Local {
		return "is reserved for callers without a key"
	}
	if strings.HasPrefix(name, settings.NamePrefix) {
		return "begins with " + settings.NamePrefix + ", as the names of people who signed in do"
	}
	if k == nil || k.o.Reserved == nil {
		return ""
	}
	return k.o.Reserved(name)
}
