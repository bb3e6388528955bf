package calls

import (
	"context"

	"github.com/callyard/callyard/internal/calls/usage"
	"github.com/callyard/callyard/pkg/schema"
)

// What is asked for, and what was counted.
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

// Usage returns what the hours of usage have of the calls that the query chooses. It does
// not check who asks. Errors: KindInvalidRequest for a query without sense or with too many
// rows; KindUnavailable.
func (c *Calls) Usage(ctx context.Context, q UsageQuery) (*UsageReport, error) {
	if c.o.Usage == nil {
		return nil, schema.Errorf(schema.KindUnavailable, "Usage is not counted here: the operator must run callyard init, and update NATS to the permissions of this version.")
	}
	return c.o.Usage.Report(ctx, q)
}
