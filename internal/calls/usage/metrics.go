package usage

import (
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// CountIn returns an [Options].Counted that updates metrics.
func CountIn(m *telemetry.Usage) func(tenant schema.TenantID, server schema.ServerID, c Counts) {
	return func(tenant schema.TenantID, server schema.ServerID, c Counts) {
		m.Count(string(tenant.OrDefault()), string(server), telemetry.UsageCounts{
			Outcomes: map[string]int64{
				string(schema.StateSucceeded): c.Succeeded, string(schema.StateFailed): c.Failed, string(schema.StateDenied): c.Denied,
				string(schema.StateExpired): c.Expired, string(schema.StateCanceled): c.Canceled, string(schema.StateUnknown): c.Unknown,
			},
			Held: c.Held, Seconds: float64(c.Micros) / 1e6, In: c.In, Out: c.Out,
		})
	}
}
