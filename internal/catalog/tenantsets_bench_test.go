package catalog

import (
	"fmt"
	"testing"

	"github.com/callyard/callyard/internal/toolset"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// BenchmarkHas measures [Sets.Has], which runs for each call of a key that is limited to sets. There
// are 5,000 tools and 50 tenants, each with a set of all tools that it sees.
func BenchmarkHas(b *testing.B) {
	c := openForTwoTenants(b, bustest.Start(b))
	c.mu.Lock()
	for s := range 50 {
		id := schema.ServerID(fmt.Sprintf("server-%02d", s))
		of := &server{view: Server{Server: schema.Server{ID: id}}, defs: &definitions{}}
		for n := range 100 {
			of.defs.order = append(of.defs.order, &schema.Tool{Server: id, Name: fmt.Sprintf("tool_%03d", n)})
		}
		c.servers[id] = of
	}
	c.mu.Unlock()
	c.finding.Sees = nil
	tenants := make([]schema.TenantID, 50)
	for i := range tenants {
		tenants[i] = schema.TenantID(fmt.Sprintf("t%d", i))
		if _, err := c.Sets().Put(b.Context(), tenants[i], toolset.Set{Name: "s", Include: []toolset.Selector{{}}}, 0, ""); err != nil {
			b.Fatal(err)
		}
	}
	for _, tenant := range tenants { // compose each set once
		if !c.Sets().Has(tenant, "s", "server-00", "tool_000") {
			b.Fatal("it has not")
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if !c.Sets().Has(tenants[i%len(tenants)], "s", "server-49", "tool_099") {
			b.Fatal("it has not")
		}
	}
}
