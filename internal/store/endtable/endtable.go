// Package endtable stores the grants of the authorization server that ended while access tokens of them
// were still valid. Approvers write it, and every front door sees each write.
//
// The table is of the platform: it contains only the ids of grants, and no data of a person or a
// tenant.
package endtable

import (
	"context"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

// Kept is the retention of an end. It is longer than the lifetime of any access token.
const Kept = 3 * time.Hour

// End is the end of a grant.
type End struct {
	Grant string    `json:"grant"`
	At    time.Time `json:"at"`
}

var ends = bus.TableSpec{Bucket: bus.BucketOAuthEnded, What: "ended grants of the authorization server", Keep: Kept}

// Specs returns the table specs, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{ends} }

// Open opens the table for reading.
func Open(ctx context.Context, c *bus.Conn) (*bus.Table[End], error) {
	return bus.OpenTable(ctx, c, ends, func(e *End) string { return e.Grant }, nil)
}

// OpenBucket opens the table for writing.
func OpenBucket(ctx context.Context, c *bus.Conn) (*bus.Bucket, error) {
	return bus.OpenBucket(ctx, c, ends)
}
