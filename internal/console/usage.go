package console

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/spreadsheet"
	"github.com/callyard/callyard/internal/kit/ui"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	usagePath     = Root + "/usage"
	usageFilePath = usagePath + "/download"
	// usageRows is the maximum number of rows on the page. The file has all of them.
	usageRows = 200
)

var (
	// usageDimensions lists the dimensions by which rows can be grouped.
	usageDimensions = []string{"tenant", "key", "server", "tool"}
	// usageNames lists the columns before the counts.
	usageNames = []string{"start", "tenant", "key", "server", "tool"}
	// usageCounts lists the count columns of the file.
	usageCounts = []string{"calls", "succeeded", "tool_errors", "failed", "denied", "expired", "canceled", "unknown", "unfinished", "held", "took_ms", "bytes_in", "bytes_out"}
)

// usagePeriods lists the time ranges that end now.
var usagePeriods = []struct {
	Name, Label string
	Lasts       time.Duration
}{{"24h", "24 hours", 24 * time.Hour}, {"7d", "7 days", 7 * 24 * time.Hour}, {"30d", "30 days", 30 * 24 * time.Hour}, {"90d", "90 days", 90 * 24 * time.Hour}}

// usageQuery holds the filters in the address of the page.
type usageQuery struct {
	By                         []string
	Interval, Period, From, To string
	Tenant, Key, Server, Tool  string   // filters
	Columns                    []string // the grouping of the rows, in the order of usageNames
	Refusal                    string
	params                     callyard.GetUsageParams
}

// usageOf parses the filters of a page. The default is the last 24 hours by tool.
func usageOf(q url.Values, now time.Time) *usageQuery {
	of := func(name string) string { return strings.TrimSpace(q.Get(name)) }
	u := &usageQuery{Interval: q.Get("interval"), Period: q.Get("period"), From: q.Get("from"), To: q.Get("to"), Tenant: of("tenant"), Key: of("key"), Server: of("server"), Tool: of("tool")}
	for _, by := range usageDimensions {
		if slices.Contains(q["by"], by) {
			u.By = append(u.By, by)
		}
	}
	if len(q) == 0 {
		u.By, u.Period = []string{"tool"}, usagePeriods[0].Name
	}
	u.params = callyard.GetUsageParams{Tenant: optional(u.Tenant)}
	u.params.From, u.params.To, u.Refusal = periodOf(u.From, u.To)
	for _, p := range usagePeriods {
		if p.Name == u.Period && u.From == "" && u.To == "" {
			from := now.Add(-p.Lasts)
			u.params.From = &from
		}
	}
	// Group by the filters that the API does not have, so that rows can be filtered here.
	by := map[string]bool{"key": u.Key != "", "server": u.Server != "", "tool": u.Tool != ""}
	for _, one := range usageDimensions {
		if by[one] = by[one] || u.Has(one); by[one] {
			u.params.By = append(u.params.By, callyard.GetUsageParamsBy(one))
		}
	}
	if interval := callyard.GetUsageParamsInterval(u.Interval); interval.Valid() {
		u.params.Interval = &interval
	}
	has := map[string]bool{"start": u.params.Interval != nil, "tenant": by["tenant"] || by["key"], "key": by["key"], "server": by["server"] || by["tool"], "tool": by["tool"]}
	u.Columns = slices.DeleteFunc(slices.Clone(usageNames), func(name string) bool { return !has[name] })
	return u
}

// Has reports whether the rows are grouped by a dimension.
func (u *usageQuery) Has(by string) bool { return slices.Contains(u.By, by) }

// Shows reports whether a column is shown.
func (u *usageQuery) Shows(name string) bool { return slices.Contains(u.Columns, name) }

// step returns the time span of a row with a start.
func (u *usageQuery) step() time.Duration {
	if u.Interval == "day" {
		return 24 * time.Hour
	}
	return time.Hour
}

// takes reports whether a row matches the filters. Keys and tools match only in full.
func (u *usageQuery) takes(key, server, tool string) bool {
	return (u.Key == "" || u.Key == key) && (u.Server == "" || u.Server == server) && (u.Tool == "" || u.Tool == tool)
}

type usagePage struct {
	Q          *usageQuery
	Dimensions []string
	Periods    any
	Report     callyard.UsageReport
	Figures    []figure
	Rows       []usageRow
	All        int // rows that match
	Chart      *bars
	File       string // the address of the rows as CSV
}

// usageRow is a row with the address of its calls.
type usageRow struct {
	R     callyard.UsageRow
	Wrong int64 // calls that failed, were denied, expired or have an unknown outcome
	Took  string
	Calls string
}

// usage serves the usage page, by hour or day.
func (c *Console) usage(w http.ResponseWriter, r *http.Request, v Visit) error {
	q := r.URL.Query()
	page := usagePage{Q: usageOf(q, c.o.Now()), Dimensions: usageDimensions, Periods: usagePeriods, File: usageFilePath + "?" + q.Encode()}
	status := http.StatusOK
	if page.Q.Refusal == "" {
		report, err := get[callyard.UsageReport](r.Context(), c, v, with(api.GetUsage, &page.Q.params))
		switch kind := schema.KindOf(err); {
		case kind == schema.KindInvalidRequest: // too many rows, or an invalid time range
			page.Q.Refusal = problem.Of(err).Detail
		case err != nil:
			return c.orKey(w, r, err)
		default:
			page.fill(report)
		}
	}
	if page.Q.Refusal != "" {
		status = http.StatusBadRequest
	}
	return c.render(w, v, status, "usage", view{Title: "Usage", Here: usagePath, Page: &page})
}

// wrong returns the number of calls without a result.
func wrong(r *callyard.UsageRow) int64 { return r.Failed + r.Denied + r.Expired + r.Unknown }

// fill selects the rows that match the filters, and computes their sums.
func (p *usagePage) fill(report callyard.UsageReport) {
	p.Report = report
	if p.Q.Shows("start") {
		p.Chart = barsOf(report.From, report.To, p.Q.step())
	}
	var sum callyard.UsageRow
	for i := range report.Rows {
		one := &report.Rows[i]
		if !p.Q.takes(text(one.Key), text(one.Server), text(one.Tool)) {
			continue
		}
		p.All++
		for to, n := range map[*int64]int64{&sum.Calls: one.Calls, &sum.ToolErrors: one.ToolErrors, &sum.Failed: wrong(one), &sum.Held: one.Held, &sum.BytesIn: one.BytesIn, &sum.BytesOut: one.BytesOut} {
			*to += n
		}
		sum.TookMs += one.TookMs
		if p.Chart != nil && one.Start != nil {
			p.Chart.add(*one.Start, one.Calls, wrong(one))
		}
		if len(p.Rows) < usageRows {
			p.Rows = append(p.Rows, usageRow{R: *one, Wrong: wrong(one), Took: seconds(one.TookMs / 1000), Calls: p.callsOf(one)})
		}
	}
	if p.Chart != nil {
		p.Chart.draw()
	}
	p.Figures = []figure{
		{Label: "Calls", Value: ui.Number(sum.Calls)}, {Label: "Without a result", Value: ui.Number(sum.Failed), Note: "failed, denied, expired or unknown"},
		{Label: "Tool errors", Value: ui.Number(sum.ToolErrors)}, {Label: "Held for approval", Value: ui.Number(sum.Held)},
		{Label: "Time of servers", Value: seconds(sum.TookMs / 1000)}, {Label: "Arguments", Value: bytesIn(sum.BytesIn)}, {Label: "Results", Value: bytesIn(sum.BytesOut)},
	}
}

// callsOf returns the address of the calls of a row, or "" if no list can be filtered for them.
func (p *usagePage) callsOf(r *callyard.UsageRow) string {
	if text(r.Server) == "" && r.Start == nil {
		return ""
	}
	from, to := p.Report.From, p.Report.To
	if r.Start != nil {
		from, to = *r.Start, r.Start.Add(p.Q.step())
	}
	return at(Root+"/calls", "server", text(r.Server), "tool", text(r.Tool), "since", from.UTC().Format(timeForms[0]), "until", to.UTC().Format(timeForms[0]))
}

// usageFile downloads the rows as CSV, with the columns of callyard usage --csv. Numbers are
// written verbatim from the API.
func (c *Console) usageFile(w http.ResponseWriter, r *http.Request, v Visit) error {
	u := usageOf(r.URL.Query(), c.o.Now())
	if u.Refusal != "" {
		return schema.Errorf(schema.KindInvalidRequest, "%s", u.Refusal)
	}
	report, err := get[struct {
		Rows []map[string]json.RawMessage `json:"rows"`
	}](r.Context(), c, v, with(api.GetUsage, &u.params))
	if err != nil {
		return c.orKey(w, r, err)
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="callyard-usage.csv"`)
	out := csv.NewWriter(w)
	lines := [][]string{slices.Concat(u.Columns, usageCounts)}
	for _, row := range report.Rows {
		if !u.takes(unquoted(row["key"]), unquoted(row["server"]), unquoted(row["tool"])) {
			continue
		}
		var line []string
		for _, name := range u.Columns {
			line = append(line, spreadsheet.Text(unquoted(row[name])))
		}
		for _, name := range usageCounts {
			line = append(line, string(row[name]))
		}
		lines = append(lines, line)
	}
	_ = out.WriteAll(lines) // the client disconnected; there is no one to report the error to
	return nil
}

// unquoted returns the text of a JSON string, or "" if raw is absent.
func unquoted(raw json.RawMessage) (text string) {
	_ = json.Unmarshal(raw, &text)
	return text
}

// bytesIn formats a number of bytes in a suitable unit.
func bytesIn(n int64) string {
	const kib = 1 << 10
	switch {
	case n < kib:
		return ui.Number(n) + " B"
	case n < kib*kib:
		return significant(float64(n)/kib) + " KiB"
	case n < kib*kib*kib:
		return significant(float64(n)/(kib*kib)) + " MiB"
	}
	return significant(float64(n)/(kib*kib*kib)) + " GiB"
}
