// Package credentialtable keeps the credentials of people at MCP servers in NATS. It sees
// ciphertext only: what a row holds is decided by package credential. Rows are changed by
// compare-and-set and read from the leader, so that of all who renew one at once one wins.
//
// The table is of the platform: it connects people to its servers. A person is asked for by a
// name that has the tenant in it (credential.Person), which is part of the key of the row and
// of what its ciphertext is bound to, so that people of one name in two tenants have a row each.
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

// Key names the row of a person at a server. Neither can be read in it.
func Key(server schema.ServerID, person string) string {
	sum := sha256.Sum256([]byte(string(server) + "\x00" + person))
	return hex.EncodeToString(sum[:])
}
