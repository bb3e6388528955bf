package frontdoor

import (
	"context"
	"fmt"

	resttenants "github.com/callyard/callyard/internal/frontdoor/rest/tenants"
	"github.com/callyard/callyard/pkg/schema"
)

// eraseTenant ends what a tenant has and destroys its data key, in this order: nothing new
// comes, what is there ends, and only then what it stored cannot be read any more.
func (d *FrontDoor) eraseTenant(ctx context.Context, by *schema.Principal, tenant schema.TenantID) (done resttenants.TenantErasure, err error) {
	done = resttenants.TenantErasure{ID: tenant, Encrypted: d.o.DataKeys != nil}
	for _, key := range d.issued.List(by) {
		if !key.Tenant.Is(tenant) {
			continue
		}
		if key.Configured {
			return done, schema.Errorf(schema.KindConflict, "The API key %q of the configuration is of tenant %q. Remove it there, have the front doors read the file, and repeat the request.", key.Name, tenant)
		}
		if err := d.issued.Revoke(ctx, by, key.ID, key.Revision); err != nil {
			return done, err
		}
		done.Keys++
	}
	ended, err := d.calls.EraseTenant(ctx, tenant)
	done.Held, done.Permissions, done.Batches, done.Canceled = ended.Held, ended.Permissions, ended.Batches, ended.Canceled
	if err != nil {
		return done, err
	}
	if err := d.o.DataKeys.Destroy(ctx, tenant); err != nil {
		e := schema.Errorf(schema.KindUnavailable, "The data key could not be destroyed; repeat the request. (%w)", err)
		e.Retryable = true
		return done, e
	}
	d.o.Log.Info("a tenant was erased", "tenant", tenant, "by", by.Name, "counts", fmt.Sprintf("%+v", done))
	return done, nil
}
