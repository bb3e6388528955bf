package journal

import (
	"context"

	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/schema"
)

// Kinds of what is sealed. The place of each has the id of its journal too: a call gets its
// index only when it is stored.
const (
	kindArguments = "journal arguments"
	kindExtra     = "journal extra"
	kindResult    = "journal result"
	kindObject    = "journal object" // and its name
)

// erased stands for bytes that were erased with their tenant: there is no such object, so
// whoever asks for them is told that they are not kept.
var erased = Object{Name: "erased", Size: 1}

// sealCall returns the record as it is stored, with inline bytes sealed for the tenant of its
// principal, or else of the journal. Refused lines are not sealed: they are our own words,
// and packed by their likeness.
func sealCall(ctx context.Context, ring *datakey.Ring, of schema.TenantID, id schema.BatchID, r *CallRecord) (*CallRecord, error) {
	if ring == nil || r.Method == MethodRefused || len(r.Arguments)+len(r.Extra) == 0 {
		return r, nil
	}
	sealed, tenant := *r, r.tenant(of)
	var err error
	if sealed.Arguments, err = ring.Seal(ctx, tenant, r.Arguments, kindArguments, string(id)); err != nil {
		return nil, err
	}
	sealed.Extra, err = ring.Seal(ctx, tenant, r.Extra, kindExtra, string(id))
	return &sealed, err
}

// tenant is that of the principal who asks; of is that of the journal.
func (r *CallRecord) tenant(of schema.TenantID) schema.TenantID {
	if r.Principal.Name == "" {
		return of
	}
	return r.Principal.Tenant
}

// openCalls opens what sealCall sealed, in place.
func openCalls(ctx context.Context, ring *datakey.Ring, id schema.BatchID, all []CallRecord) (err error) {
	for i := range all {
		r := &all[i]
		if datakey.Sealed(r.Arguments) {
			if r.Arguments, err = ring.Open(ctx, r.Arguments, kindArguments, string(id)); datakey.Gone(err) {
				r.Arguments, r.ArgumentsObject, err = nil, erased, nil
			}
			if err != nil {
				return unavailable(err)
			}
		}
		if r.Extra, err = ring.Open(ctx, r.Extra, kindExtra, string(id)); err != nil && !datakey.Gone(err) {
			return unavailable(err)
		}
	}
	return nil
}

// sealResult returns the record as it is stored; see sealCall.
func sealResult(ctx context.Context, ring *datakey.Ring, of schema.TenantID, id schema.BatchID, r *ResultRecord) (*ResultRecord, error) {
	if ring == nil || len(r.Body)+len(r.Error) == 0 || len(r.Error) > 0 && r.CallID == "" {
		return r, nil
	}
	sealed, err := *r, error(nil)
	if sealed.Body, err = ring.Seal(ctx, r.tenant(of), r.Body, kindResult, string(id)); err != nil {
		return nil, err
	}
	sealed.Error, err = ring.Seal(ctx, r.tenant(of), r.Error, kindResult, string(id))
	return &sealed, err
}

func (r *ResultRecord) tenant(of schema.TenantID) schema.TenantID {
	if r.Tenant == "" {
		return of
	}
	return r.Tenant
}

// openResults opens what sealResult sealed, in place.
func openResults(ctx context.Context, ring *datakey.Ring, id schema.BatchID, all []ResultRecord) error {
	for i := range all {
		r := &all[i]
		for _, b := range []*[]byte{&r.Body, &r.Error} {
			if !datakey.Sealed(*b) {
				continue
			}
			plain, err := ring.Open(ctx, *b, kindResult, string(id))
			if datakey.Gone(err) {
				plain, r.BodyObject, err = nil, erased, nil
			}
			if err != nil {
				return unavailable(err)
			}
			*b = plain
		}
	}
	return nil
}
