package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// IsAct reports whether an operation that requires this changes something for operators.
func IsAct(method string, need scope.Need) bool {
	return method != http.MethodGet && slices.Contains(need, scope.Admin)
}

// act records an act of the request; status 0: it is about to begin.
func (x *Exchange) act(ctx context.Context, operation, path string, status int) error {
	if x.shared.Acts == nil {
		return nil
	}
	if made := x.Header().Get("Location"); status != 0 && made != "" {
		path = made // what was made, not only where
	}
	return x.shared.Acts(ctx, &Act{By: x.Principal, Operation: operation, Path: path, RequestID: x.ID, Status: status, Before: x.before, After: x.after})
}

// recorded is a handler of an act whose begin and end are recorded, also where it is
// refused. Without the record of its begin it does not run.
func recorded(operation string, need scope.Need, h Handler) Handler {
	return func(x *Exchange, r *http.Request) error {
		if err := x.allow(operation, need); err != nil {
			if often := x.shared.refusals.record(&x.Principal); often != nil {
				return often
			}
			_ = x.act(r.Context(), operation, r.URL.Path, http.StatusForbidden) // it was refused, recorded or not
			return err
		}
		if err := x.act(r.Context(), operation, r.URL.Path, 0); err != nil {
			return err
		}
		err := h(x, r)
		status := x.Status
		if err != nil {
			status = x.shared.Problems.Of(err).Status
		}
		_ = x.act(context.WithoutCancel(r.Context()), operation, r.URL.Path, status) // its begin is recorded
		return err
	}
}
