// Package oauthtable stores the state of the approver's authorization server: its keys, and the grants
// that people gave to programs. It handles only ciphertext; package authserver defines the contents of
// a row. Rows are changed by compare-and-set and read from the leader, so that only one of several
// concurrent redemptions of a token succeeds.
//
// The tables are of the platform: a grant is looked up by a secret before its owner is known. Its
// ciphertext contains the owner and the tenant.
package oauthtable

import (
	"context"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

// GrantsKept is the retention of a grant after its last use. No grant is valid for longer.
const GrantsKept = 90 * 24 * time.Hour

// AssertionsKept is how long a client assertion is remembered. No assertion is valid for longer.
const AssertionsKept = 15 * time.Minute

var (
	keys   = bus.TableSpec{Bucket: bus.BucketOAuthKeys, What: "keys of the authorization server"}
	grants = bus.TableSpec{Bucket: bus.BucketOAuthGrants, What: "grants of the authorization server", Keep: GrantsKept}
	once   = bus.TableSpec{Bucket: bus.BucketOAuthOnce, What: "accepted client assertions", Keep: AssertionsKept}
)

// Specs returns the table specs, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{keys, grants, once} }

// OpenKeys opens the table of keys, which do not expire.
func OpenKeys(ctx context.Context, c *bus.Conn) (*bus.Bucket, error) {
	return bus.OpenBucket(ctx, c, keys)
}

// OpenGrants opens the table of grants.
func OpenGrants(ctx context.Context, c *bus.Conn) (*bus.Bucket, error) {
	return bus.OpenBucket(ctx, c, grants)
}

// Rows reads all rows of the tables of keys and of grants, by key.
func Rows(ctx context.Context, c *bus.Conn) (ofKeys, ofGrants map[string][]byte, err error) {
	if ofKeys, err = bus.Rows(ctx, c, keys); err != nil {
		return nil, nil, err
	}
	ofGrants, err = bus.Rows(ctx, c, grants)
	return ofKeys, ofGrants, err
}

// OpenOnce opens the table of accepted client assertions.
func OpenOnce(ctx context.Context, c *bus.Conn) (*bus.Claims, error) {
	return bus.OpenOnce(ctx, c, once)
}
