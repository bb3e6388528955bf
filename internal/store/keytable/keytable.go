// Package keytable stores the API keys that were created with the API, and their last use. Every front
// door sees each write. A change names the revision that it changes, so no change is lost. The key
// itself is never stored, only its SHA-256. A key of another tenant is treated as nonexistent.
package keytable

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
	"unique"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/pkg/schema"
)

// Digest is the SHA-256 of a key.
type Digest [sha256.Size]byte

// MarshalText encodes the digest as hex digits.
func (d Digest) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(d[:])), nil }

// UnmarshalText decodes hex digits.
func (d *Digest) UnmarshalText(text []byte) error {
	if n, err := hex.Decode(d[:], text[:min(len(text), 2*len(d))]); err != nil || n != len(d) || len(text) != 2*len(d) {
		return fmt.Errorf("a digest must be %d hex digits", 2*len(d))
	}
	return nil
}

// Second is a Unix time in seconds; 0 means none. It takes a third of the memory of a time.Time.
type Second int64

// At returns the time in seconds, or 0 for the zero time.
func At(t time.Time) Second {
	if t.IsZero() {
		return 0
	}
	return Second(t.Unix())
}

// Time returns the start of the second, or the zero time for 0.
func (s Second) Time() time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(int64(s), 0).UTC()
}

// Secret is a secret of a key from before a rotation.
type Secret struct {
	Hash Digest `json:"hash"`
	// Until is the time at which it expires.
	Until Second `json:"until"`
}

// Key is a key that was created with the API.
type Key struct {
	ID string `json:"id"`
	// Name is the name of the principal, which is unique among keys.
	Name   string          `json:"name"`
	Owner  string          `json:"owner,omitempty"`
	Groups []string        `json:"groups,omitempty"`
	Tenant schema.TenantID `json:"tenant,omitempty"`
	// Role is a role of internal/authn/scope. If set, its scopes replace Scopes.
	Role string `json:"role,omitempty"`
	// Scopes are scopes of internal/authn/scope. Tools limits calls to tools that match one of
	// these SERVER/TOOL patterns. If empty, tools are not limited.
	Scopes []string `json:"scopes"`
	Tools  []string `json:"tools,omitempty"`
	// OwnSets is set if Scopes name sets of the key's tenant first, because an administrator of that
	// tenant gave them. Otherwise they name sets of the installation, as in keys of older versions.
	OwnSets bool `json:"own_sets,omitempty"`
	// Limits bounds the calls of the key; nil means no limits. See LimitsOf.
	Limits *scope.Limits `json:"limits,omitempty"`
	Note   string        `json:"note,omitempty"`
	Hash   Digest        `json:"hash"`
	// Former lists earlier secrets that are still accepted.
	Former    []Secret `json:"former,omitempty"`
	Created   Second   `json:"created"`
	CreatedBy string   `json:"created_by"`
	Changed   Second   `json:"changed"`
	ChangedBy string   `json:"changed_by"`
	Rotated   Second   `json:"rotated,omitempty"`
	Expires   Second   `json:"expires"`
}

// LimitsOf returns limits in the form of [Key.Limits]: nil for none, which most keys have, to save memory.
func LimitsOf(l scope.Limits) *scope.Limits {
	if l.None() {
		return nil
	}
	return &l
}

// Bounds returns the limits of the key.
func (k *Key) Bounds() (l scope.Limits) {
	if k.Limits != nil {
		l = *k.Limits
	}
	return l
}

// UnmarshalJSON decodes a key into little memory: many keys have the same owner, groups and scopes, and
// decoded slices have unused capacity.
func (k *Key) UnmarshalJSON(text []byte) error {
	type plain Key
	var read plain
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	for _, s := range []*string{&read.Owner, &read.Role, (*string)(&read.Tenant), &read.CreatedBy, &read.ChangedBy} {
		*s = unique.Make(*s).Value()
	}
	for _, list := range []*[]string{&read.Groups, &read.Scopes, &read.Tools} {
		if *list == nil {
			continue
		}
		small := make([]string, len(*list))
		for i, s := range *list {
			small[i] = unique.Make(s).Value()
		}
		*list = small
	}
	*k = Key(read)
	return nil
}

// Use is the last use of a key, to the minute.
type Use struct {
	ID string `json:"id"`
	// Minute is the Unix time in minutes.
	Minute int64 `json:"minute"`
}
