package journal

import (
	"context"

	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/schema"
)

// Kinds of sealed data. Each is also bound to the id of its journal. Calls are not bound to an index,
// because they get it only when they are stored.
const (
	kindArguments = "journal arguments"
	kindExtra     = "journal extra"
	kindResult    = "journal result"
	kindObject    = "journal object" // also bound to its name
)

// erased replaces data that was erased with its tenant. The object does not exist, so readers get the
// error for data that is no longer stored.
var erased = Object{Name: "erased", Size: 1}

// sealCall returns the record in stored form, with inline data sealed for the tenant of its principal, or
// else of the journal. Refused lines are not sealed: their text is ours, and packMessage must be able
// to compare them.
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

// tenant returns the tenant of the requesting principal, or else of, the tenant of the journal.
func (r *CallRecord) tenant(of schema.TenantID) schema.TenantID {
	if r.Principal.Name == "" {
		return of
	}
	return r.Principal.Tenant
}

// openCalls decrypts records of sealCall in place.
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

// sealResult returns the record in stored form; see sealCall.
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

// openResults decrypts records of sealResult in place.
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
