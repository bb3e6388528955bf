package records

import (
	"context"

	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/schema"
)

// detailKind is the place of a sealed detail. Calls that failed alike share one in a message,
// so that it belongs to no call.
const detailKind = "call record"

// sealed returns a detail as it is stored; one that cannot be sealed is left out, and the
// record is stored without.
func (r *Recorder) sealed(tenant schema.TenantID, detail string) string {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	b, err := r.ring.Seal(ctx, tenant, []byte(detail), detailKind)
	if err != nil {
		return ""
	}
	return string(b)
}

// opened returns a detail as it was told; "" for one that was erased with its tenant, or
// cannot be read now.
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
