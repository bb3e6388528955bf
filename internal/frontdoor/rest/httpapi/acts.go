package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/pkg/schema"
)

// Act is something that an operator does, or tries to do, for the audit record.
type Act struct {
	By        schema.Principal
	Operation string // its id in the document
	Path      string
	RequestID string
	// Status is that of the answer; 0: the act is about to begin.
	Status int
	// Before and After are digests of what was changed, where the operation tells them; see
	// [Exchange.Changes].
	Before, After string
}

// Acts records acts. The record of one that is about to begin is stored when it returns nil;
// on an error the act is not done.
type Acts func(ctx context.Context, a *Act) error

// Changes notes what an act changes, as digests of its JSON; nil: there is none.
func (x *Exchange) Changes(before, after any) {
	x.before, x.after = digestOf(before), digestOf(after)
}

func digestOf(v any) string {
	if v == nil {
		return ""
	}
	body, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return schema.Digest(body)
}

// IsAct reports whether an operation that requires this changes something for operators.
func IsAct(method string, need scope.Need) bool {
	return method != http.MethodGet && slices.Contains(need.Scopes, scope.Admin)
}

// operation is one of the document, as requests are judged by it.
type operation struct {
	id   string
	need scope.Need
	act  bool // see [IsAct]
}

// permit runs do, and returns its error, where the credential has what the operation needs;
// else it returns the error to answer with. do may have answered itself. Begin and end of an
// act are recorded, also where it is refused; without the record of its begin it does not run.
func (x *Exchange) permit(ctx context.Context, op *operation, path string, do func() error) error {
	err := x.allow(&op.need)
	if !op.act {
		if err != nil {
			return err
		}
		return do()
	}
	if err != nil {
		if often := x.shared.refusals.record(&x.Principal); often != nil {
			return often
		}
		_ = x.record(ctx, op, path, http.StatusForbidden) // it was refused, recorded or not
		return err
	}
	if err := x.record(ctx, op, path, 0); err != nil {
		return err
	}
	err = do()
	status := x.Status
	if err != nil {
		status = x.shared.Problems.Of(err).Status
	}
	_ = x.record(ctx, op, path, status) // its begin is recorded
	return err
}

// record records an act of the request, also when the client is gone; status 0: it is about to
// begin.
func (x *Exchange) record(ctx context.Context, op *operation, path string, status int) error {
	if x.shared.Acts == nil {
		return nil
	}
	if made := x.Header().Get("Location"); status != 0 && made != "" {
		path = made // what was made, not only where
	}
	return x.shared.Acts(context.WithoutCancel(ctx), &Act{By: x.Principal, Operation: op.id, Path: path, RequestID: x.ID, Status: status, Before: x.before, After: x.after})
}
