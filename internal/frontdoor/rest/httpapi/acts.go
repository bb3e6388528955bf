package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/pkg/schema"
)

// Act is an action, or an attempted action, of an operator for the audit record.
type Act struct {
	By        schema.Principal
	Operation string // its ID in the document
	Path      string
	RequestID string
	// Status is the HTTP status of the answer; 0 means that the act is about to begin.
	Status int
	// Before and After are digests of the changed object, if the operation provides them; see
	// [Exchange.Changes].
	Before, After string
}

// Acts records acts. For an act that is about to begin, it returns nil only after the record is
// stored. If it returns an error, the act does not run.
type Acts func(ctx context.Context, a *Act) error

// Changes records the change of an act as digests of its JSON before and after. nil means that the
// object does not exist.
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

// IsAct reports whether an operation with these requirements is a change by an operator.
func IsAct(method string, need scope.Requirement) bool {
	return method != http.MethodGet && slices.Contains(need.Scopes, scope.Admin)
}

// operation holds the access rules of an operation of the document.
type operation struct {
	id   string
	need scope.Requirement
	act  bool // see [IsAct]
}

// permit runs do and returns its error if the credential permits the operation. Otherwise it
// returns the error to answer with. do may have sent the answer itself. The begin and end of an act
// are recorded, even if it is refused. If its begin cannot be recorded, it does not run.
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
		_ = x.record(ctx, op, path, http.StatusForbidden) // it was refused, whether or not that is recorded
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
	_ = x.record(ctx, op, path, status) // its begin is recorded already
	return err
}

// record records an act of the request, even if the client has disconnected. Status 0 means that
// the act is about to begin.
func (x *Exchange) record(ctx context.Context, op *operation, path string, status int) error {
	if x.shared.Acts == nil {
		return nil
	}
	if made := x.Header().Get("Location"); status != 0 && made != "" {
		path = made // record the created resource, not its collection
	}
	return x.shared.Acts(context.WithoutCancel(ctx), &Act{By: x.Principal, Operation: op.id, Path: path, RequestID: x.ID, Status: status, Before: x.before, After: x.after})
}
