package usage

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Dimension is a grouping dimension of a report.
type Dimension string

// The dimensions. The key dimension is the principal that calls are made as. Tool implies Server.
const (
	ByTenant Dimension = "tenant"
	ByKey    Dimension = "key"
	ByServer Dimension = "server"
	ByTool   Dimension = "tool"
)

// Interval is the time range of one row of a report.
type Interval string

// The intervals. Whole is the entire time range of the report.
const (
	Whole Interval = ""
	Hour  Interval = "hour"
	Day   Interval = "day"
)

// Query selects and groups the calls of a report.
type Query struct {
	// From and To bound the admission time of the calls. From is rounded down to an hour, To up.
	// A zero From means 24 h before To, a zero To means now.
	From, To time.Time
	By       []Dimension
	Interval Interval
	// If Tenant is not nil, only that tenant is counted. If Principal is not empty, only that
	// principal is counted. Neither matches the row named Other, which mixes several.
	Tenant    *schema.TenantID
	Principal string
}

// Line is a row of a report. Dimensions that the query does not group by are empty. Start is the start
// of its interval.
type Line struct {
	Row
	Start time.Time
	Counts
}

// Report is the result of a query.
type Report struct {
	From, To time.Time
	// Complete is set if everything that was stored at the time of the request is counted.
	Complete bool
	Lines    []Line
	Total    Counts
}

const (
	// freshFor is the maximum time that a report waits for new records to be counted.
	freshFor = 2 * time.Second
	// maxLines limits the lines of a report.
	maxLines = 10_000
)

// Report counts new records, for at most 2 s, and returns the calls that the query selects: by time,
// then most calls first. Errors: KindInvalidRequest for a query that is invalid or gives more than
// 10,000 lines; KindUnavailable.
func (u *Usage) Report(ctx context.Context, q Query) (*Report, error) {
	from, before, err := q.span(time.Now())
	if err != nil {
		return nil, err
	}
	if err := u.o.Records.Sync(ctx); err != nil {
		return nil, err
	}
	r := &Report{From: startOf(from), To: startOf(before)}
	counting, cancel := context.WithTimeout(ctx, freshFor)
	r.Complete, _ = u.Count(counting) // an error makes the report incomplete, which it states
	cancel()
	select {
	case u.reading <- struct{}{}:
		defer func() { <-u.reading }()
	case <-ctx.Done():
		return nil, unavailable(ctx.Err())
	}
	hours, err := u.store.hours(ctx, from, before)
	if err != nil {
		return nil, unavailable(err)
	}
	lines, owns := map[Line]*Counts{}, u.o.Records.Owners()
	for _, number := range hours {
		h, _, err := u.store.hour(ctx, number)
		if err != nil {
			return nil, unavailable(err)
		}
		for row, c := range h.rows {
			if !q.wants(row) || c.Calls == 0 {
				continue
			}
			counts := c.counts(u.o.Records.Alive, owns)
			r.Total.Add(counts)
			line := q.line(row, startOf(number))
			if lines[line] == nil {
				if len(lines) == maxLines {
					return nil, schema.Errorf(schema.KindInvalidRequest, "The report has more than %d rows. Ask for a shorter time, a longer interval or fewer dimensions.", maxLines)
				}
				lines[line] = new(Counts)
			}
			lines[line].Add(counts)
		}
	}
	r.Lines = sorted(lines)
	return r, nil
}

func sorted(lines map[Line]*Counts) []Line {
	all := make([]Line, 0, len(lines))
	for line, counts := range lines {
		line.Counts = *counts
		all = append(all, line)
	}
	slices.SortFunc(all, func(a, b Line) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(b.Calls, a.Calls), compareRows(a.Row, b.Row))
	})
	return all
}

func unavailable(err error) error {
	return schema.Errorf(schema.KindUnavailable, "The usage cannot be read at the moment; check that NATS is running. (%w)", err)
}

// span returns the hours of the query, [from, before).
func (q *Query) span(now time.Time) (from, before int64, err error) {
	to := q.To
	if to.IsZero() {
		to = now
	}
	start := q.From
	if start.IsZero() {
		start = to.Add(-24 * time.Hour)
	}
	if !start.Before(to) {
		return 0, 0, schema.Errorf(schema.KindInvalidRequest, "from must be before to.")
	}
	if from = hourOf(start); from < 0 {
		from = 0
	}
	before = hourOf(to.Add(time.Hour - time.Nanosecond))
	// Older hours are not stored, and later ones have no counts yet.
	from = max(from, hourOf(now.Add(-KeepFor))-1)
	before = max(min(before, hourOf(now)+24), from)
	return from, before, nil
}

func (q *Query) wants(row Row) bool {
	return (q.Tenant == nil || row.Tenant == q.Tenant.Stored()) && (q.Principal == "" || row.Principal == q.Principal && row != otherOf(row.Tenant))
}

// line returns the line that reports a row of an hour.
func (q *Query) line(row Row, at time.Time) (l Line) {
	by := func(d Dimension) bool { return slices.Contains(q.By, d) }
	if by(ByTenant) || by(ByKey) {
		l.Tenant = row.Tenant
	}
	if by(ByKey) {
		l.Principal = row.Principal
	}
	if by(ByServer) || by(ByTool) {
		l.Server = row.Server
	}
	if by(ByTool) {
		l.Tool = row.Tool
	}
	switch q.Interval {
	case Hour:
		l.Start = at
	case Day:
		l.Start = at.Truncate(24 * time.Hour)
	case Whole:
	}
	return l
}
