// Package oauthtable keeps what the authorization server of the approver must remember: its
// keys, and what people have granted to programs. It sees ciphertext only: what a row holds is
// decided by package authserver. Rows are changed by compare-and-set and read from the leader,
// so that of all who redeem one token at once one wins.
//
// The tables are of the platform: a grant is asked for by a secret before anybody is known, and
// says in its ciphertext whose it is, with the tenant.
package oauthtable

import (
	"context"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

// GrantsKept is how long a grant is kept after it was last used; none can be valid for longer.
const GrantsKept = 90 * 24 * time.Hour

// AssertionsKept is how long an assertion of a client is known; none can be valid for longer.
const AssertionsKept = 15 * time.Minute

var (
	keys   = bus.TableSpec{Bucket: bus.BucketOAuthKeys, What: "keys of the authorization server"}
	grants = bus.TableSpec{Bucket: bus.BucketOAuthGrants, What: "grants of the authorization server", Keep: GrantsKept}
	once   = bus.TableSpec{Bucket: bus.BucketOAuthOnce, What: "accepted client assertions", Keep: AssertionsKept}
)

// Specs are the tables, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{keys, grants, once} }

// OpenKeys opens the table of keys. It is kept for ever.
func OpenKeys(ctx context.Context, c *bus.Conn) (*bus.Bucket, error) {
	return bus.OpenBucket(ctx, c, keys)
}

// OpenGrants opens the table of grants.
func OpenGrants(ctx context.Context, c *bus.Conn) (*bus.Bucket, error) {
	return bus.OpenBucket(ctx, c, grants)
}

// OpenOnce opens the assertions of clients that were accepted.
func OpenOnce(ctx context.Context, c *bus.Conn) (*bus.Once, error) { return bus.OpenOnce(ctx, c, once) }
