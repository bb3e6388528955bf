package cli

import (
	"context"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/spreadsheet"
)

// usageDimensions and usageIntervals list the values of --by and --interval.
var (
	usageDimensions = []string{"tenant", "key", "server", "tool"}
	usageIntervals  = []string{"hour", "day"}
)

// usageQuery holds the values of the flags.
type usageQuery struct {
	from, to, interval, tenant string
	by                         []string
	csv                        bool
}

// usageCommand reports usage by tenant, key, server or tool.
func usageCommand() *cobra.Command {
	var q usageQuery
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show usage: calls, time and bytes by tenant, key, server or tool",
		Long: "usage adds up the recorded calls by hour; hours are kept for 90 days. A call counts in the hour in which it was admitted. " +
			"With the scope admin you see your tenant, and all tenants if yours is the default one; otherwise your own calls.",
		Example: "  callyard usage --from 7d\n  callyard usage --from 30d --by tenant --interval day --csv\n  callyard usage --by key,tool --tenant billing --json",
		Args:    takes(0, 0),
	}
	flags := cmd.Flags()
	flags.StringVar(&q.from, "from", "", "start: an age such as 2h or 7d, or a time such as 2026-01-02T15:04:05Z (default 24 hours before the end)")
	flags.StringVar(&q.to, "to", "", "end, in the same formats (default now)")
	flags.StringSliceVar(&q.by, "by", []string{"key"}, "group the rows by tenant, key, server or tool; several are separated by commas")
	flags.StringVar(&q.interval, "interval", "", "one row for each hour or day")
	flags.StringVar(&q.tenant, "tenant", "", "only this tenant")
	flags.BoolVar(&q.csv, "csv", false, "write comma-separated values with all counts")
	offer(cmd, "by", usageDimensions...)
	offer(cmd, "interval", usageIntervals...)
	cmd.RunE = withClient(func(ctx context.Context, c *client, _ []string) error {
		values, err := q.values(time.Now())
		if err != nil {
			return err
		}
		if q.csv && c.out.structured() {
			return fail(exitUsage, "Use --csv or --output, not both.")
		}
		return show(ctx, c, with(c.api.GetUsage, values), func(u *callyard.UsageReport) error { return q.print(c, u) })
	})
	return cmd
}

func (q *usageQuery) values(now time.Time) (*callyard.GetUsageParams, error) {
	values := &callyard.GetUsageParams{Tenant: optional(q.tenant), Interval: optional(callyard.GetUsageParamsInterval(q.interval))}
	if q.interval != "" && !slices.Contains(usageIntervals, q.interval) {
		return nil, fail(exitUsage, "--interval must be hour or day%s.", didYouMean(q.interval, usageIntervals))
	}
	for i, by := range q.by {
		by = strings.TrimSpace(by)
		if q.by[i] = by; !slices.Contains(usageDimensions, by) {
			return nil, fail(exitUsage, "--by must be tenant, key, server or tool%s.", didYouMean(by, usageDimensions))
		}
		values.By = append(values.By, callyard.GetUsageParamsBy(by))
	}
	var err error
	if values.From, err = momentOf("from", q.from, now); err == nil {
		values.To, err = momentOf("to", q.to, now)
	}
	return values, err
}

// usageColumn is a column: its names in a table and in CSV, and the text of a row in each.
type usageColumn struct {
	table, csv string // "" omits the column
	text       func(*callyard.UsageRow) string
	exact      func(*callyard.UsageRow) string // in CSV; if nil, text
}

// columns returns the columns of the query: the grouping columns, then the counts.
func (q *usageQuery) columns() []usageColumn {
	by := func(one string) bool { return slices.Contains(q.by, one) }
	name := func(title string, text func(*callyard.UsageRow) string) usageColumn {
		return usageColumn{strings.ToUpper(title), title, text, func(r *callyard.UsageRow) string { return spreadsheet.Text(oneLine(text(r))) }}
	}
	var all []usageColumn
	if q.interval != "" {
		all = append(all, usageColumn{"START", "start", func(r *callyard.UsageRow) string { return deref(r.Start).UTC().Format("2006-01-02T15:04Z") }, nil})
	}
	if by("tenant") {
		all = append(all, name("tenant", func(r *callyard.UsageRow) string { return deref(r.Tenant) }))
	}
	if by("key") {
		all = append(all, name("key", func(r *callyard.UsageRow) string { return deref(r.Key) }))
	}
	if by("server") || by("tool") {
		all = append(all, name("server", func(r *callyard.UsageRow) string { return deref(r.Server) }))
	}
	if by("tool") {
		all = append(all, name("tool", func(r *callyard.UsageRow) string { return deref(r.Tool) }))
	}
	number := func(title, member string, of func(*callyard.UsageRow) int64) usageColumn {
		return usageColumn{title, member, func(r *callyard.UsageRow) string { return strconv.FormatInt(of(r), 10) }, nil}
	}
	size := func(title, member string, of func(*callyard.UsageRow) int64) usageColumn {
		c := number(title, member, of)
		c.exact, c.text = c.text, func(r *callyard.UsageRow) string { return size(int(of(r))) }
		return c
	}
	return append(all,
		number("CALLS", "calls", func(r *callyard.UsageRow) int64 { return r.Calls }),
		number("SUCCEEDED", "succeeded", func(r *callyard.UsageRow) int64 { return r.Succeeded }),
		number("", "tool_errors", func(r *callyard.UsageRow) int64 { return r.ToolErrors }),
		number("FAILED", "failed", func(r *callyard.UsageRow) int64 { return r.Failed }),
		number("DENIED", "denied", func(r *callyard.UsageRow) int64 { return r.Denied }),
		number("", "expired", func(r *callyard.UsageRow) int64 { return r.Expired }),
		number("", "canceled", func(r *callyard.UsageRow) int64 { return r.Canceled }),
		number("UNKNOWN", "unknown", func(r *callyard.UsageRow) int64 { return r.Unknown }),
		number("", "unfinished", func(r *callyard.UsageRow) int64 { return r.Unfinished }),
		number("HELD", "held", func(r *callyard.UsageRow) int64 { return r.Held }),
		usageColumn{
			"TOOK", "took_ms", func(r *callyard.UsageRow) string {
				return shortTime(time.Duration(r.TookMs * float64(time.Millisecond)))
			},
			func(r *callyard.UsageRow) string { return strconv.FormatFloat(r.TookMs, 'f', -1, 64) },
		},
		size("IN", "bytes_in", func(r *callyard.UsageRow) int64 { return r.BytesIn }),
		size("OUT", "bytes_out", func(r *callyard.UsageRow) int64 { return r.BytesOut }),
	)
}

// print writes the report as a table or as CSV.
func (q *usageQuery) print(c *client, u *callyard.UsageReport) error {
	var header []string
	rows := make([][]cell, len(u.Rows))
	for _, column := range q.columns() {
		title, text := column.table, column.text
		if q.csv {
			title = column.csv
			if column.exact != nil {
				text = column.exact
			}
		}
		if title == "" {
			continue
		}
		header = append(header, title)
		for i := range u.Rows {
			rows[i] = append(rows[i], cell{text: text(&u.Rows[i])})
		}
	}
	if err := c.noteCounted(u.Complete); err != nil {
		return err
	}
	if !q.csv {
		return c.out.table(header, rows)
	}
	w := csv.NewWriter(c.out.w)
	all := [][]string{header}
	for _, row := range rows {
		line := make([]string, len(row))
		for i := range row {
			line[i] = row[i].text
		}
		all = append(all, line)
	}
	if err := w.WriteAll(all); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// noteCounted adds a note if the report is incomplete.
func (c *client) noteCounted(complete bool) error {
	if complete {
		return nil
	}
	return c.note.text("The newest records are not counted yet; repeat the command in some seconds.\n")
}
