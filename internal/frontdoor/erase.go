package frontdoor

import (
	"context"
	"fmt"
	"slices"

	"github.com/callyard/callyard/internal/authn/issued"
	resttenants "github.com/callyard/callyard/internal/frontdoor/rest/tenants"
	"github.com/callyard/callyard/internal/store/credentialtable"
	"github.com/callyard/callyard/internal/store/settable"
	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/schema"
)

// eraseTenant ends everything of a tenant and destroys its data key. The order matters: block new
// work, end existing work, and only then make the stored data unreadable.
func (d *FrontDoor) eraseTenant(ctx context.Context, by *schema.Principal, tenant schema.TenantID) (done resttenants.TenantErasure, err error) {
	done = resttenants.TenantErasure{ID: tenant, Encrypted: d.o.DataKeys != nil}
	keys := slices.DeleteFunc(d.issued.List(by), func(key issued.Key) bool { return !key.Tenant.Is(tenant) })
	for _, key := range keys { // check all keys before revoking the first one, so that a refusal changes nothing
		if key.Configured {
			return done, schema.Errorf(schema.KindConflict, "The API key %q in the configuration belongs to tenant %q. Remove it there, reload the front doors, and repeat the request.", key.Name, tenant)
		}
	}
	for _, key := range keys {
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
	if done.Sets, err = settable.RemoveTenant(ctx, d.o.Stored, tenant); err != nil {
		return done, schema.Errorf(schema.KindUnavailable, "The sets of the tenant could not be removed; repeat the request. (%w)", err)
	}
	if done.Credentials, err = credentialtable.RemoveTenant(ctx, d.o.Stored, tenant); err != nil {
		return done, schema.Errorf(schema.KindUnavailable, "The credentials of the tenant's people could not be removed; repeat the request. (%w)", err)
	}
	known, err := datakey.Known(ctx, d.o.Stored, tenant)
	if err != nil {
		return done, schema.Errorf(schema.KindUnavailable, "The data key of the tenant could not be read; repeat the request. (%w)", err)
	}
	done.Found = known || ended.Known || done.Keys+done.Held+done.Permissions+done.Batches+done.Canceled+done.Sets+done.Credentials > 0
	// The mark that this sets makes approvers revoke the permissions that the tenant's people granted.
	if d.o.DataKeys != nil {
		err = d.o.DataKeys.Destroy(ctx, tenant)
	} else {
		err = datakey.Erase(ctx, d.o.Stored, tenant)
	}
	if err != nil {
		return done, schema.Errorf(schema.KindUnavailable, "The data key could not be destroyed; repeat the request. (%w)", err).RetryableAfter(0)
	}
	d.o.Log.Info("a tenant was erased", "tenant", tenant, "by", by.Name, "counts", fmt.Sprintf("%+v", done))
	return done, nil
}
