package usage

import (
	"encoding/json"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/pkg/schema"
)

// Other is the principal and tool of the row for calls beyond the limits of an hour. It is also the
// tenant of that row if there are too many tenants.
const Other = authn.Other

// Row is the key of a count. The default tenant is "". Server is "" for calls that named no existing
// server. For a request other than tools/call, Tool is the MCP method.
type Row struct {
	Tenant    schema.TenantID `json:"t,omitempty"`
	Principal string          `json:"p,omitempty"`
	Server    schema.ServerID `json:"s,omitempty"`
	Tool      string          `json:"n,omitempty"`
}

// rowOf returns the row of a call.
func rowOf(r *records.Record) Row {
	row := Row{r.Tenant.Stored(), r.Principal, r.Server, r.Tool}
	if row.Tool == "" && r.Method != schema.MethodCallTool {
		row.Tool = r.Method
	}
	return row
}

// size is an upper bound of the stored size of the row in bytes, including its counts.
func (r Row) size() int {
	const counts = 360
	body, err := json.Marshal(r)
	if err != nil {
		return counts
	}
	return len(body) + counts
}

// Counts holds the totals of a group of calls.
type Counts struct {
	// Calls is the total: the sum of Succeeded, Failed, Denied, Expired, Canceled, Unknown and
	// Unfinished.
	Calls      int64 `json:"calls,omitempty"`
	Succeeded  int64 `json:"ok,omitempty"`
	Failed     int64 `json:"failed,omitempty"`
	Denied     int64 `json:"denied,omitempty"`
	Expired    int64 `json:"expired,omitempty"`
	Canceled   int64 `json:"canceled,omitempty"`
	Unknown    int64 `json:"unknown,omitempty"`
	Unfinished int64 `json:"open,omitempty"`
	// ToolErrors is the number of Succeeded calls whose result is a tool error.
	ToolErrors int64 `json:"tool_errors,omitempty"`
	// Held is the number of calls that waited for an approval, or ran with one.
	Held int64 `json:"held,omitempty"`
	// Micros is the time at the MCP servers in µs. In and Out are the bytes of arguments and
	// results.
	Micros int64 `json:"us,omitempty"`
	In     int64 `json:"in,omitempty"`
	Out    int64 `json:"out,omitempty"`
}

// countsOf returns the counts of one call.
func countsOf(r *records.Record) Counts {
	if r.Dropped {
		return Counts{}
	}
	c := Counts{Calls: 1, Micros: r.Took.Microseconds(), In: r.ArgumentBytes, Out: r.ResultBytes}
	switch r.State {
	case schema.StateSucceeded:
		c.Succeeded = 1
		if r.ToolError {
			c.ToolErrors = 1
		}
	case schema.StateFailed:
		c.Failed = 1
	case schema.StateDenied:
		c.Denied = 1
	case schema.StateExpired:
		c.Expired = 1
	case schema.StateCanceled:
		c.Canceled = 1
	case schema.StateUnknown:
		c.Unknown = 1
	default:
		c.Unfinished = 1
	}
	if r.ContinuesElsewhere() {
		c.In = 0 // the record of the owner that ends the call has them too
	}
	if r.Approval != "" || r.State == schema.StateHeld {
		c.Held = 1
	}
	return c
}

// Add adds o to the counts.
func (c *Counts) Add(o Counts) { c.add(o, 1) }

func (c *Counts) add(o Counts, times int64) {
	c.Calls += times * o.Calls
	c.Succeeded += times * o.Succeeded
	c.Failed += times * o.Failed
	c.Denied += times * o.Denied
	c.Expired += times * o.Expired
	c.Canceled += times * o.Canceled
	c.Unknown += times * o.Unknown
	c.Unfinished += times * o.Unfinished
	c.ToolErrors += times * o.ToolErrors
	c.Held += times * o.Held
	c.Micros += times * o.Micros
	c.In += times * o.In
	c.Out += times * o.Out
}
