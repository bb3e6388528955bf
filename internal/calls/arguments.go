package calls

import (
	"context"

	"github.com/callyard/callyard/pkg/schema"
)

// Arguments returns the exact argument bytes of a tool call as its caller sent them, before any
// edit by an approver. Errors: KindConflict if the arguments are not stored; KindUnavailable.
func (c *Calls) Arguments(ctx context.Context, s *Status) (args []byte, err error) {
	switch {
	case s.approval != nil:
		args, err = c.o.Ledger.Asked(ctx, s.approval.Binding.Tenant, s.approval.ID)
	case s.call != nil && (s.call.Method == "" || s.call.Method == schema.MethodCallTool):
		args, err = c.o.Durable.Calls.ArgumentsOf(ctx, s.Tenant, s.ID, s.call)
	}
	if schema.KindOf(err) == schema.KindNotFound || err == nil && len(args) == 0 {
		return nil, schema.Errorf(schema.KindConflict, "The arguments of call %s are not stored. They are stored for durable calls, for calls of batches until some time after the end of the batch, and for held calls, after their end up to 4 KiB. Send the call again with its arguments.", s.ID).WithCall(s.ID)
	}
	return args, err
}
