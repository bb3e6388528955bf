package usage

import (
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/pkg/schema"
)

// UsageReport is the answer of GET /usage.
type UsageReport struct {
	From     time.Time   `json:"from" doc:"The start of the first hour."`
	To       time.Time   `json:"to" doc:"The end of the last hour."`
	Complete bool        `json:"complete" doc:"Whether all records that were stored at the time of the request are counted. If false, send the request again in a few seconds."`
	Total    UsageCounts `json:"total" doc:"The sums of all rows."`
	Rows     []UsageRow  `json:"rows" nullable:"false" doc:"Sorted by time, then by the number of calls, highest first."`
}

// UsageRow counts the calls of one interval, tenant, key, server and tool. The query parameters by
// and interval define which of these are distinguished.
type UsageRow struct {
	Start  *time.Time      `json:"start,omitempty" doc:"The start of the hour or day; only with interval."`
	Tenant schema.TenantID `json:"tenant,omitempty" doc:"The tenant of the principal; with by=tenant or by=key."`
	Key    string          `json:"key,omitempty" doc:"The principal: the name of the API key, or the subject of the token; with by=key. (other) is the sum of the principals beyond the limit for an hour."`
	Server schema.ServerID `json:"server,omitempty" doc:"The server; with by=server or by=tool. Absent for calls that named no server that exists."`
	Tool   string          `json:"tool,omitempty" doc:"The tool, or the MCP method of a request that is not a tool call; with by=tool."`
	UsageCounts
}

// UsageCounts are the counts of a group of calls.
type UsageCounts struct {
	Calls      int64   `json:"calls" doc:"All calls: the sum of succeeded, failed, denied, expired, canceled, unknown and unfinished."`
	Succeeded  int64   `json:"succeeded" doc:"Calls with a result, tool errors included."`
	Failed     int64   `json:"failed" doc:"Calls that were refused or failed."`
	Denied     int64   `json:"denied" doc:"Calls that the policy, a scope or a person denied."`
	Expired    int64   `json:"expired" doc:"Calls that were not approved or not sent to a worker in time."`
	Canceled   int64   `json:"canceled" doc:"Calls that were canceled before they ran."`
	Unknown    int64   `json:"unknown" doc:"Calls that were sent and whose outcome cannot be determined."`
	Unfinished int64   `json:"unfinished" doc:"Calls that are held, waiting or running."`
	ToolErrors int64   `json:"tool_errors" doc:"The succeeded calls whose result is an error of the tool."`
	Held       int64   `json:"held" doc:"The calls that waited for an approval, or ran with one."`
	TookMs     float64 `json:"took_ms" doc:"The sum of the times that the MCP servers took, in milliseconds, measured by the workers."`
	BytesIn    int64   `json:"bytes_in" doc:"The bytes of the arguments."`
	BytesOut   int64   `json:"bytes_out" doc:"The bytes of the results."`
}

func countsOf(c *calls.UsageCounts) UsageCounts {
	return UsageCounts{
		Calls: c.Calls, Succeeded: c.Succeeded, Failed: c.Failed, Denied: c.Denied, Expired: c.Expired, Canceled: c.Canceled, Unknown: c.Unknown, Unfinished: c.Unfinished,
		ToolErrors: c.ToolErrors, Held: c.Held, TookMs: float64(c.Micros) / 1000, BytesIn: c.In, BytesOut: c.Out,
	}
}
