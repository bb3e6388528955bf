package usage

import (
	"encoding/json"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/pkg/schema"
)

// Other is the principal and tool of the row that has what is beyond the bound of an hour,
// and its tenant where even the tenants are too many.
const Other = authn.Other

// Row names what is counted together. The tenant is "" for the default one. The server is
// "" for calls that named none that exists. The tool is the method of MCP for what is no
// call of a tool.
type Row struct {
	Tenant    schema.TenantID `json:"t,omitempty"`
	Principal string          `json:"p,omitempty"`
	Server    schema.ServerID `json:"s,omitempty"`
	Tool      string          `json:"n,omitempty"`
}

// rowOf is the row of a call.
func rowOf(r *records.Record) Row {
	row := Row{r.Tenant.Stored(), r.Principal, r.Server, r.Tool}
	if row.Tool == "" && r.Method != schema.MethodCallTool {
		row.Tool = r.Method
	}
	return row
}

// size is an upper bound on the bytes that the row takes when it is stored, the counts
// included.
func (r Row) size() int {
	const counts = 360
	body, err := json.Marshal(r)
	if err != nil {
		return counts
	}
	return len(body) + counts
}

// Counts are the numbers of some calls.
type Counts struct {
	// Calls is the number of all: the sum of Succeeded, Failed, Denied, Expired, Canceled,
	// Unknown and Unfinished.
	Calls      int64 `json:"calls,omitempty"`
	Succeeded  int64 `json:"ok,omitempty"`
	Failed     int64 `json:"failed,omitempty"`
	Denied     int64 `json:"denied,omitempty"`
	Expired    int64 `json:"expired,omitempty"`
	Canceled   int64 `json:"canceled,omitempty"`
	Unknown    int64 `json:"unknown,omitempty"`
	Unfinished int64 `json:"open,omitempty"`
	// ToolErrors are those of Succeeded whose result is an error of the tool.
	ToolErrors int64 `json:"tool_errors,omitempty"`
	// Held are those of all that waited for an approval, or ran with one.
	Held int64 `json:"held,omitempty"`
	// Micros is the time at the MCP servers, in µs; In and Out are the bytes of arguments
	// and results.
	Micros int64 `json:"us,omitempty"`
	In     int64 `json:"in,omitempty"`
	Out    int64 `json:"out,omitempty"`
}

// countsOf are those of one call.
func countsOf(r *records.Record) Counts {
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
	if r.Approval != "" || r.State == schema.StateHeld {
		c.Held = 1
	}
	return c
}

// Add adds the counts of others.
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
