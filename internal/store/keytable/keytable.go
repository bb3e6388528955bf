// Package keytable keeps the API keys that were made over the API, and when each was last
// used. Every front door sees each write; a change names the revision that it changes, so
// none is lost. A key itself is never stored: its SHA-256 is. A key of another tenant is
// answered like one that does not exist.
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

// MarshalText returns the digest as hex digits.
func (d Digest) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(d[:])), nil }

// UnmarshalText reads hex digits.
func (d *Digest) UnmarshalText(text []byte) error {
	if n, err := hex.Decode(d[:], text[:min(len(text), 2*len(d))]); err != nil || n != len(d) || len(text) != 2*len(d) {
		return fmt.Errorf("a digest must be %d hex digits", 2*len(d))
	}
	return nil
}

// Second is a time in seconds since the start of 1970; 0: none. It takes a third of the
// memory of a time.Time.
type Second int64

// At is the second of a time; 0 for the zero time.
func At(t time.Time) Second {
	if t.IsZero() {
		return 0
	}
	return Second(t.Unix())
}

// Time is the start of the second; the zero time for 0.
func (s Second) Time() time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(int64(s), 0).UTC()
}

// Secret is one that a key had before it was rotated.
type Secret struct {
	Hash Digest `json:"hash"`
	// Until is when it ends.
	Until Second `json:"until"`
}

// Key is a key that was made over the API.
type Key struct {
	ID string `json:"id"`
	// Name is the name of the principal, which no other key has.
	Name   string          `json:"name"`
	Owner  string          `json:"owner,omitempty"`
	Groups []string        `json:"groups,omitempty"`
	Tenant schema.TenantID `json:"tenant,omitempty"`
	// Role is a role of internal/authn/scope, whose scopes count in place of Scopes; "": none.
	Role string `json:"role,omitempty"`
	// Scopes are those of internal/authn/scope. Tools limits calls to tools that fit one of
	// these patterns of SERVER/TOOL; none: it does not limit them.
	Scopes []string `json:"scopes"`
	Tools  []string `json:"tools,omitempty"`
	// OwnSets says that Scopes name sets as the tenant of the key uses the names, its own sets
	// first, because an administrator of that tenant gave them. Else they name sets of the
	// installation, as keys do that an older version wrote.
	OwnSets bool `json:"own_sets,omitempty"`
	// Limits bound the calls of the key; nil: none. See LimitsOf.
	Limits *scope.Limits `json:"limits,omitempty"`
	Note   string        `json:"note,omitempty"`
	Hash   Digest        `json:"hash"`
	// Former are secrets before this one that are still taken.
	Former    []Secret `json:"former,omitempty"`
	Created   Second   `json:"created"`
	CreatedBy string   `json:"created_by"`
	Changed   Second   `json:"changed"`
	ChangedBy string   `json:"changed_by"`
	Rotated   Second   `json:"rotated,omitempty"`
	Expires   Second   `json:"expires"`
}

// LimitsOf returns limits as a key has them: most keys have none, which then take no memory.
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

// UnmarshalJSON reads a key so that it takes little memory: many keys have the same owner,
// groups and scopes, and slices that were read have room that nobody needs.
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

// Use is when a key was last used, to the minute.
type Use struct {
	ID string `json:"id"`
	// Minute counts from the start of 1970.
	Minute int64 `json:"minute"`
}
