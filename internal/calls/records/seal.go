package records

import (
	"context"

	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/schema"
)

// detailKind is the kind under which details are sealed. Calls that failed with the same detail
// share one in a message, so it is not bound to a call.
const detailKind = "call record"

// sealed encrypts a detail for storage. If that fails, it returns "", and the record is stored
// without a detail.
func (r *Recorder) sealed(tenant schema.TenantID, detail string) string {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	b, err := r.ring.Seal(ctx, tenant, []byte(detail), detailKind)
	if err != nil {
		return ""
	}
	return string(b)
}

// opened decrypts a stored detail. It returns "" if the detail was erased with its tenant or cannot
// be read now.
func (r *Recorder) opened(detail string) string {
	if !datakey.Sealed(detail) {
		return detail
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	b, err := r.ring.Open(ctx, []byte(detail), detailKind)
	if err != nil {
		return ""
	}
	return string(b)
}
