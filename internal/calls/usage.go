package calls

import (
	"context"

	"github.com/callyard/callyard/internal/calls/usage"
	"github.com/callyard/callyard/pkg/schema"
)

// Aliases of the types of package usage.
type (
	// UsageQuery is [usage.Query].
	UsageQuery = usage.Query
	// UsageReport is [usage.Report].
	UsageReport = usage.Report
	// UsageDimension is [usage.Dimension].
	UsageDimension = usage.Dimension
	// UsageInterval is [usage.Interval].
	UsageInterval = usage.Interval
	// UsageCounts is [usage.Counts].
	UsageCounts = usage.Counts
)

// Usage returns the hourly usage of the calls that the query selects. It does not check
// permissions. Errors: KindInvalidRequest for a query that is invalid or matches too many rows;
// KindUnavailable.
func (c *Calls) Usage(ctx context.Context, q UsageQuery) (*UsageReport, error) {
	if c.o.Usage == nil {
		return nil, schema.Errorf(schema.KindUnavailable, "Usage is not counted here: the operator must load the NATS permissions of this version, run callyard init, and then restart the front door.")
	}
	return c.o.Usage.Report(ctx, q)
}
