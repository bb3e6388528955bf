// Package credentialtable stores the credentials of people at MCP servers in NATS. It handles only
// ciphertext; package credential defines the contents of a row. Rows are changed by compare-and-set
// and read from the leader, so that only one of several concurrent renewals succeeds.
//
// The table is of the platform: it connects people to the platform's servers. A person is
// identified by a name that includes the tenant (credential.Person). The name is part of the row key
// and of the data that the ciphertext is bound to, so people of the same name in two tenants have
// separate rows. The row keys of a tenant begin with its name, so that its rows can be found when the
// tenant is erased. Those of the default tenant, which cannot be erased, do not.
package credentialtable

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

var spec = bus.TableSpec{Bucket: bus.BucketCredentials, What: "credentials at MCP servers"}

// Specs returns the table specs, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{spec} }

// Open opens the table.
func Open(ctx context.Context, c *bus.Conn) (*bus.Bucket, error) { return bus.OpenBucket(ctx, c, spec) }

// Rows reads all rows, by key.
func Rows(ctx context.Context, c *bus.Conn) (map[string][]byte, error) {
	return bus.Rows(ctx, c, spec)
}

// Key returns the row key of a person of a tenant at a server. It reveals neither the person nor the
// server.
func Key(tenant schema.TenantID, server schema.ServerID, person string) string {
	name := FormerKey(server, person)
	if tenant.Is(schema.DefaultTenant) {
		return name
	}
	return bus.Token(tenant) + "." + name
}

// FormerKey returns the row key that versions up to 0.1.0 used, for people of every tenant.
func FormerKey(server schema.ServerID, person string) string {
	sum := sha256.Sum256([]byte(string(server) + "\x00" + person))
	return hex.EncodeToString(sum[:])
}

// RemoveTenant removes the rows of the people of a tenant, and returns their number. It is idempotent,
// and returns 0 if the table does not exist.
func RemoveTenant(ctx context.Context, c *bus.Conn, tenant schema.TenantID) (removed int, err error) {
	// Regardless of the revision: a concurrent renewal then fails and stores nothing.
	return bus.RemoveUnder(ctx, c, spec, bus.Token(tenant))
}
