// Package endtable keeps the grants of the authorization server that ended while access tokens
// of them were still valid. Approvers write it, and every front door sees each write.
//
// The table is of the platform: it has the ids of grants alone, and nothing of a person or of a
// tenant.
package endtable

import (
	"context"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

// Kept is how long an end is known: longer than any access token is valid.
const Kept = 3 * time.Hour

// End is the end of a grant.
type End struct {
	Grant string    `json:"grant"`
	At    time.Time `json:"at"`
}

var ends = bus.TableSpec{Bucket: bus.BucketOAuthEnded, What: "ended grants of the authorization server", Keep: Kept}

// Specs are the tables, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{ends} }

// Open opens the table to read it.
func Open(ctx context.Context, c *bus.Conn) (*bus.Table[End], error) {
	return bus.OpenTable(ctx, c, ends, func(e *End) string { return e.Grant }, nil)
}

// OpenBucket opens the table to write it.
func OpenBucket(ctx context.Context, c *bus.Conn) (*bus.Bucket, error) {
	return bus.OpenBucket(ctx, c, ends)
}
