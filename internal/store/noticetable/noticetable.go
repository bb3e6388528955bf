// Package noticetable stores which receivers were notified of which approval events. Rows are changed by
// compare-and-set. The table is of the platform: only the approver reads it, for approvals of all
// tenants, and a row contains no data of an approval but its id.
package noticetable

import (
	"context"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

// kept is longer than the retention of an approval in the ledger after its last change.
const kept = 31 * 24 * time.Hour

var spec = bus.TableSpec{Bucket: bus.BucketNotices, What: "delivered events", Keep: kept}

// Specs returns the specs of all tables, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{spec} }

// Open opens the table. key returns the key of a row; see [bus.OpenTable].
func Open[T any](ctx context.Context, c *bus.Conn, key func(*T) string) (*bus.Table[T], error) {
	return bus.OpenTable(ctx, c, spec, key, nil)
}
