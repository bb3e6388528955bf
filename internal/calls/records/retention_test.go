package records

import (
	"testing"
	"time"

	"github.com/callyard/callyard/internal/tenants/retention"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestErrorsAreWithheldWhenTheRetentionOfTheirTenantIsOver(t *testing.T) {
	r := open(t, bustest.Start(t).Connect(t, "test"), Options{Retention: retention.Periods{"red": time.Hour}})
	began := time.Now()
	ids := map[schema.TenantID]schema.CallID{}
	for _, tenant := range []schema.TenantID{"red", "blue"} {
		ids[tenant] = schema.NewCallID()
		c := r.Begin(&Record{ID: ids[tenant], Principal: "ann", Tenant: tenant, Server: "s", Tool: "t"})
		c.End(Outcome{Err: schema.Errorf(schema.KindProtocol, "secret of %s", tenant), At: began})
	}
	ok := r.Begin(&Record{ID: schema.NewCallID(), Principal: "ann", Tenant: "red", Server: "s", Tool: "t"})
	ok.End(Outcome{Result: &schema.Result{Body: []byte("{}")}, At: began})
	for _, c := range []struct {
		after     time.Duration
		red, blue string
	}{{59 * time.Minute, "secret of red", "secret of blue"}, {time.Hour, detailWithheld, "secret of blue"}} {
		r.now = func() time.Time { return began.Add(c.after) }
		seen := func(how string, of func(schema.CallID) *Record) {
			t.Helper()
			for tenant, want := range map[schema.TenantID]string{"red": c.red, "blue": c.blue} {
				if got := of(ids[tenant]); got == nil || got.Detail != want || got.Error != schema.KindProtocol || got.State != schema.StateFailed {
					t.Errorf("after %s, %s, the record of %s: %+v", c.after, how, tenant, got)
				}
			}
			if got := of(ok.rec.ID); got == nil || got.Detail != "" {
				t.Errorf("after %s, %s, a record without an error: %+v", c.after, how, got)
			}
		}
		seen("by its id", func(id schema.CallID) *Record {
			rec, err := r.Get(t.Context(), schema.AllTenants(), id)
			if err != nil {
				t.Fatal(err)
			}
			return rec
		})
		all := map[schema.CallID]*Record{}
		for _, rec := range readAllPages(t, r, Filter{}, 10) {
			all[rec.ID] = &rec
		}
		seen("in a list", func(id schema.CallID) *Record { return all[id] })
		clear(all)
		if err := r.Each(t.Context(), schema.AllTenants(), Filter{}, func(rec *Record) bool { all[rec.ID] = rec; return true }); err != nil {
			t.Fatal(err)
		}
		seen("one by one", func(id schema.CallID) *Record { return all[id] })
	}
}
