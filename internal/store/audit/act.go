package audit

import (
	"context"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// actWithin limits the time for which the record of an action may delay its request.
const actWithin = 5 * time.Second

// Act records an action of an operator: once before it begins, with status 0, and once after its
// end, with the HTTP status of its answer. Kind and outcome follow from the status. Before the
// action, nil means that the record is stored. So no action runs without a record, even if the
// process is killed. The error is of [schema.KindUnavailable]; Act logs its cause.
func (l *Log) Act(ctx context.Context, e Entry) error {
	ctx, cancel := context.WithTimeout(ctx, actWithin)
	defer cancel()
	e.Kind = ActEnded
	switch {
	case e.Status == 0:
		e.Kind = ActBegun
	case e.Status < 400:
		e.Outcome = "succeeded"
	default:
		e.Outcome = "refused"
	}
	err := l.Append(ctx, e)
	if err == nil && e.Kind == ActBegun {
		err = l.Sync(ctx)
	}
	if err == nil {
		return nil
	}
	l.log.Error("an action of an operator could not be written to the audit log", "operation", e.Operation, "by", e.By, "id", e.RequestID, "error", err)
	return schema.Errorf(schema.KindUnavailable, "The audit record cannot be written, so nothing was changed. Try again later.").RetryableAfter(0)
}
