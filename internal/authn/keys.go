package authn

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/pkg/schema"
)

// Key is one configured API key.
type Key struct {
	// Name is the unique name of the principal.
	Name string `yaml:"name"`
	// Owner is the person or team that uses the key. If empty, it is Name.
	Owner string `yaml:"owner"`
	// Groups are the groups of the principal.
	Groups []string `yaml:"groups"`
	// Tenant is the tenant of the principal. If empty, it is schema.DefaultTenant.
	Tenant schema.TenantID `yaml:"tenant"`
	// Role is the role of the key; see package scope. If empty, the key may do everything.
	Role scope.Role `yaml:"role"`
	// Limits limit the calls of the key, in addition to the section limits.
	Limits scope.Limits `yaml:"limits"`
	// Hash is "sha256:" and the hexadecimal SHA-256 of the key; see [Hash].
	Hash string `yaml:"hash"`
	// Certificate is a URI or DNS name of a client certificate. It replaces Hash: a client with
	// such a certificate is the principal.
	Certificate string `yaml:"certificate"`
	// Expires is the time at which the key expires. The zero time means never.
	Expires time.Time `yaml:"expires"`
}

// Local is the principal of every request if no keys are configured. Such a front door listens on
// loopback only.
const Local = "local"

// Other is the name under which usage combines principals. No principal can have it.
const Other = "(other)"

// maxCredential is longer than any key. Longer credentials are not hashed.
const maxCredential = 512

// Keys is the table of API keys. [Keys.Replace] replaces it while requests are served. It is safe
// for concurrent use.
type Keys struct {
	table    atomic.Pointer[table]
	failures *failures
	tokens   *failures // refused access tokens, for the log
	log      *slog.Logger
}

// table is one version of the keys. It is never changed.
type table struct {
	bySum         map[[sha256.Size]byte]*entry
	byCertificate map[string]*entry
	byName        map[string]*entry
}

type entry struct {
	sum       [sha256.Size]byte
	principal schema.Principal
	limits    scope.Limits
	expires   time.Time
}

// Fault is one fault of the configured keys.
type Fault struct {
	Index   int    // of the key
	Field   string // "name", "hash" or another key of the entry
	Message string // a sentence with the fault and the fix; it contains no hash
}

// CheckKeys returns the faults of the configured keys, in their order.
func CheckKeys(keys []Key) []Fault {
	_, faults := tableOf(keys)
	return faults
}

// NewKeys returns the table of the configured keys. The error names every invalid key.
func NewKeys(keys []Key) (*Keys, error) {
	k := &Keys{failures: newFailures(), tokens: newFailures(), log: slog.New(slog.DiscardHandler)}
	if err := k.Replace(keys); err != nil {
		return nil, err
	}
	return k, nil
}

// LogTo sets the log for refused keys. It logs the client address and not the key. Call it before
// the first request.
func (k *Keys) LogTo(log *slog.Logger) { k.log = log }

// Replace activates the keys for all requests that are not authenticated yet. After an error, which
// names every invalid key, the old ones stay.
func (k *Keys) Replace(keys []Key) error {
	t, found := tableOf(keys)
	if len(found) == 0 {
		k.table.Store(t)
		return nil
	}
	faults := make([]error, len(found))
	for i, f := range found {
		faults[i] = fmt.Errorf("API key %d (%q): the %s %s", f.Index+1, keys[f.Index].Name, f.Field, f.Message)
	}
	return errors.Join(faults...)
}

func tableOf(keys []Key) (*table, []Fault) {
	t := &table{bySum: make(map[[sha256.Size]byte]*entry, len(keys)), byCertificate: make(map[string]*entry), byName: make(map[string]*entry, len(keys))}
	var faults []Fault
	for i, key := range keys {
		fault := func(field, format string, args ...any) {
			faults = append(faults, Fault{i, field, fmt.Sprintf(format, args...)})
		}
		switch {
		case key.Name == "" || len(key.Name) > 128:
			fault("name", "must have 1 to 128 characters.")
		case key.Name == Local:
			fault("name", "%q is reserved for callers without a key; choose another name.", Local)
		case key.Name == Other:
			fault("name", "%q is reserved: usage reports add up the remaining callers under it; choose another name.", Other)
		case t.byName[key.Name] != nil:
			fault("name", "%q is used by another key; names must be unique.", key.Name)
		}
		e := &entry{expires: key.Expires, limits: key.Limits, principal: schema.Principal{Name: key.Name, Owner: key.Owner, Groups: slices.Clone(key.Groups), Tenant: key.Tenant.Stored()}}
		if key.Tenant != "" && !key.Tenant.Valid() {
			fault("tenant", "must be 1 to 64 letters, digits, - and _, and begin with a letter or digit.")
		}
		if err := key.Limits.Check(); err != nil {
			fault("limits", "%s.", err)
		}
		if key.Role != "" {
			if err := key.Role.Check(); err != nil {
				fault("role", "%s.", err)
			}
			e.principal.Grant = &scope.Grant{Scopes: scope.Of(key.Role.Scopes()), ID: key.Name, Role: key.Role}
		}
		t.byName[key.Name] = e
		if key.Certificate != "" {
			if field, wrong := t.addCertificate(&key, e); wrong != "" {
				fault(field, "%s", wrong)
			}
			continue
		}
		var wrong string
		if e.sum, wrong = parseHash(key.Hash); wrong != "" {
			fault("hash", "%s", wrong)
			continue
		}
		if other := t.bySum[e.sum]; other != nil {
			fault("hash", "is also the hash of key %q; create a separate key for each.", other.principal.Name)
			continue
		}
		t.bySum[e.sum] = e
	}
	return t, faults
}

// parseHash parses a hash or returns its fault. The text may be a key by mistake, so it is never
// repeated.
func parseHash(hash string) (sum [sha256.Size]byte, wrong string) {
	if strings.HasPrefix(hash, keyPrefix) {
		return sum, "is the key itself; create a new key, because this one is now in a file, and write the hash that callyard keys new prints."
	}
	text, ok := strings.CutPrefix(hash, hashPrefix)
	raw, err := hex.DecodeString(text)
	if !ok || err != nil || len(raw) != len(sum) {
		return sum, "must be sha256: and 64 hex digits, as printed by callyard keys new."
	}
	copy(sum[:], raw)
	return sum, ""
}

// Configured reports whether there are any keys.
func (k *Keys) Configured() bool { return len(k.table.Load().byName) > 0 }

// Known is a configured key.
type Known struct {
	Principal schema.Principal
	Limits    scope.Limits
	Expires   time.Time // zero means never
	Hash      string    // see [Key]
}

// Has reports whether a configured key has that name.
func (k *Keys) Has(name string) bool { return k.table.Load().byName[name] != nil }

// Limits returns the limits of the key with that name. It takes no lock and does not allocate.
func (k *Keys) Limits(name string) (limits scope.Limits) {
	if e := k.table.Load().byName[name]; e != nil {
		limits = e.limits
	}
	return limits
}

// Grant returns the permissions of the key with that name, or nil if there are no limits to them or
// no such key. It takes no lock and does not allocate.
func (k *Keys) Grant(name string) schema.Grant {
	if e := k.table.Load().byName[name]; e != nil {
		return e.principal.Grant
	}
	return nil
}

// All returns the configured keys, by name.
func (k *Keys) All() []Known {
	t := k.table.Load()
	all := make([]Known, 0, len(t.byName))
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		if known, ok := k.Find(name); ok {
			all = append(all, known)
		}
	}
	return all
}

// Find returns a key by its name. ok is false if the key is no longer configured.
func (k *Keys) Find(name string) (known Known, ok bool) {
	e := k.table.Load().byName[name]
	if e == nil {
		return Known{}, false
	}
	return Known{e.principal, e.limits, e.expires, hashPrefix + hex.EncodeToString(e.sum[:])}, true
}

// Authenticate returns the principal of the request from "Authorization: Bearer KEY" or "X-API-Key:
// KEY". If no keys are configured, it is the principal [Local]. The error is a *schema.Error of
// KindUnauthenticated, or of KindQuota after too many wrong keys from one address.
func (k *Keys) Authenticate(r *http.Request) (schema.Principal, error) {
	if !k.Configured() {
		return schema.Principal{Name: Local}, nil
	}
	credential, _, err := Credential(r.Header)
	if err != nil {
		return schema.Principal{}, err
	}
	refusal := "The API key is unknown. Check that it is complete and meant for this address: front doors, approvers and workers have keys of their own."
	if e := k.entryOf(credential); e != nil {
		if err = e.valid(); err == nil {
			return e.principal, nil
		}
		refusal = err.Error()
	} else if len(credential) <= maxCredential && damaged(credential) {
		refusal = "The API key is damaged: its checksum is wrong. Copy the complete key again."
	}
	return schema.Principal{}, k.Refuse(r, refusal)
}

// entryOf returns the entry of a credential, or nil if there is none.
func (k *Keys) entryOf(credential string) *entry {
	if len(credential) > maxCredential {
		return nil
	}
	sum := sha256.Sum256([]byte(credential))
	e := k.table.Load().bySum[sum]
	if e == nil || subtle.ConstantTimeCompare(e.sum[:], sum[:]) != 1 {
		return nil
	}
	return e
}

// Holder returns the principal of a credential that was accepted before, if it is still valid. Unlike
// [Keys.Authenticate] it counts and logs nothing.
func (k *Keys) Holder(credential string) (who schema.Principal, ok bool) {
	e := k.entryOf(credential)
	if e == nil || e.valid() != nil {
		return who, false
	}
	return e.principal, true
}

// Refuse counts and logs a refused credential and returns the error for the response: the reason,
// which must not contain a part of the credential, or that there were too many.
func (k *Keys) Refuse(r *http.Request, reason string) error {
	if wait := k.failures.count(r.RemoteAddr); wait > 0 { // such refusals are not logged either
		return schema.Errorf(schema.KindQuota, "Too many invalid API keys were sent from your address. Wait, then send a valid key.").RetryableAfter(wait)
	}
	k.log.Info("an API key was refused", "from", r.RemoteAddr, "reason", reason)
	return schema.Errorf(schema.KindUnauthenticated, "%s", reason)
}

// RefuseToken is Refuse for an access token: it limits what it logs and returns the reason always.
// Tokens expire in normal operation, and their clients get another one only after KindUnauthenticated.
// With a limit, clients that share the address of a gateway would keep each other out. It would protect
// nothing, because a limit refuses no valid credential.
func (k *Keys) RefuseToken(r *http.Request, reason string) error {
	if k.tokens.count(r.RemoteAddr) == 0 {
		k.log.Info("an access token was refused", "from", r.RemoteAddr, "reason", reason)
	}
	return schema.Errorf(schema.KindUnauthenticated, "%s", reason)
}

// Valid returns nil if the principal with that name may still run calls: its key is in the table
// and has not expired. The principal [Local] has no key, and if no keys are configured, every
// principal is valid. The error is a *schema.Error of KindUnauthenticated. It takes no lock, and
// does not allocate if it returns nil.
func (k *Keys) Valid(principal string) error {
	t := k.table.Load()
	if len(t.byName) == 0 || principal == Local {
		return nil
	}
	if e := t.byName[principal]; e != nil {
		return e.valid()
	}
	return schema.Errorf(schema.KindUnauthenticated, "The API key %q is no longer valid. Ask the operator for a new one.", principal)
}

// valid returns nil if the key has not expired.
func (e *entry) valid() error {
	if e.expires.IsZero() || time.Now().Before(e.expires) {
		return nil
	}
	return schema.Errorf(schema.KindUnauthenticated, "The API key %q expired on %s. Ask the operator for a new one.", e.principal.Name, e.expires.UTC().Format(time.DateOnly))
}

// errNone is shared, because a front door without keys would create it for each call. It is never
// changed.
var errNone = schema.Errorf(schema.KindUnauthenticated, "Send your API key as Authorization: Bearer KEY, or as X-API-Key: KEY.")

// Sent reports whether the headers contain a credential.
func Sent(h http.Header) bool { return len(h["Authorization"])+len(h["X-Api-Key"]) > 0 }

// Credential returns the only credential of a request. bearer means that it is in the header
// Authorization. The error is a *schema.Error of KindUnauthenticated.
func Credential(h http.Header) (credential string, bearer bool, err error) {
	authorization, keys := h["Authorization"], h["X-Api-Key"]
	if !Sent(h) {
		return "", false, errNone
	}
	found := ""
	for _, value := range authorization {
		scheme, key, _ := strings.Cut(value, " ")
		if key = strings.TrimSpace(key); !strings.EqualFold(scheme, "Bearer") || key == "" {
			return "", false, schema.Errorf(schema.KindUnauthenticated, "The Authorization header must be Bearer and an API key.")
		}
		if found != "" && found != key {
			return "", false, errSeveralCredentials()
		}
		found = key
	}
	for _, key := range keys {
		if key = strings.TrimSpace(key); found != "" && found != key {
			return "", false, errSeveralCredentials()
		}
		found = key
	}
	if found == "" {
		return "", false, schema.Errorf(schema.KindUnauthenticated, "The X-API-Key header is empty; send an API key.")
	}
	return found, len(authorization) > 0, nil
}

func errSeveralCredentials() error {
	return schema.Errorf(schema.KindUnauthenticated, "The request has different API keys; send only one.")
}
