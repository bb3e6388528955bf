// Package credentialtable keeps the credentials of people at MCP servers in NATS. It sees
// ciphertext only: what a row holds is decided by package credential. Rows are changed by
// compare-and-set and read from the leader, so that of all who renew one at once one wins.
//
// The table is of the platform: it connects people to its servers. A person is asked for by a
// name that has the tenant in it (credential.Person), which is part of the key of the row and of
// what its ciphertext is bound to, so that people of one name in two tenants have a row each.
// The keys of the rows of one tenant begin with its name, so that they can be found when the
// tenant is erased; those of the default tenant, which cannot be erased, do not.
package credentialtable

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

var spec = bus.TableSpec{Bucket: bus.BucketCredentials, What: "credentials at MCP servers"}

// Specs are the tables, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{spec} }

// Open opens the table.
func Open(ctx context.Context, c *bus.Conn) (*bus.Bucket, error) { return bus.OpenBucket(ctx, c, spec) }

// Key names the row of a person of a tenant at a server. Neither the person nor the server can
// be read in it.
func Key(tenant schema.TenantID, server schema.ServerID, person string) string {
	name := FormerKey(server, person)
	if tenant.Is(schema.DefaultTenant) {
		return name
	}
	return bus.Token(tenant) + "." + name
}

// FormerKey is what [Key] returned for people of every tenant up to version 0.1.0.
func FormerKey(server schema.ServerID, person string) string {
	sum := sha256.Sum256([]byte(string(server) + "\x00" + person))
	return hex.EncodeToString(sum[:])
}

// RemoveTenant removes the rows of the people of a tenant, and returns their number. It may be
// repeated. Without the table there are none.
func RemoveTenant(ctx context.Context, c *bus.Conn, tenant schema.TenantID) (removed int, err error) {
	// Whatever a row is now: who renews it meanwhile finds it changed, and stores nothing.
	return bus.RemoveUnder(ctx, c, spec, bus.Token(tenant))
}
