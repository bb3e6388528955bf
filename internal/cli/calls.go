package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/pkg/schema"
)

// callStates lists the values of --state.
var callStates = []string{"held", "queued", "running", "succeeded", "failed", "denied", "expired", "canceled", "unknown"}

// callsCommand queries the call records.
func callsCommand() *cobra.Command {
	var q callsQuery
	cmd := &cobra.Command{
		Use:   "calls [ID]",
		Short: "List calls, or show one of them",
		Long: "calls lists the recorded calls, newest first. With the id of a call it shows the full record of this call. " +
			"Records contain digests of arguments and results, never the bytes.",
		Example: "  callyard calls --state failed,unknown --since 1h\n  callyard calls --server files --tool read --limit 200 --json\n  callyard calls call_06b2t8m3c0w3v2q5n7k9a1d4fz",
		Args:    takes(0, 1),
	}
	flags := cmd.Flags()
	flags.StringVar(&q.server, "server", "", "server whose calls are listed")
	flags.StringVar(&q.tool, "tool", "", "tool whose calls are listed")
	flags.StringVar(&q.state, "state", "", "only calls in these states, separated by commas: "+strings.Join(callStates, ", "))
	flags.StringVar(&q.since, "since", "", "only calls since this time: an age such as 90s, 15m, 2h or 7d, or a time such as 2026-01-02T15:04:05Z")
	flags.StringVar(&q.until, "until", "", "only calls before this time, in the same formats")
	flags.StringVar(&q.principal, "principal", "", "principal whose calls are listed")
	flags.StringVar(&q.tenant, "tenant", "", "tenant whose calls are listed, with --principal '*' those of all its principals")
	flags.StringVar(&q.batch, "batch", "", "batch whose calls are listed")
	flags.IntVar(&q.limit, "limit", 50, "maximum number to list")
	cmd.ValidArgsFunction = completing(callIDs)
	completingFlag(cmd, "server", serverIDs)
	completeTools(cmd, "tool")
	completingFlag(cmd, "batch", batchIDs)
	offer(cmd, "state", callStates...)
	cmd.RunE = withClient(func(ctx context.Context, c *client, args []string) error {
		if len(args) == 1 {
			return showCall(ctx, c, args[0])
		}
		now := time.Now()
		values, err := q.values(now)
		if err != nil {
			return err
		}
		return listCalls(ctx, c, values, q.limit, now)
	})
	cmd.AddCommand(&cobra.Command{
		Use: "show ID", Short: "The same as `callyard calls ID`", Args: takes(1, 1), ValidArgsFunction: cmd.ValidArgsFunction,
		RunE: withClient(func(ctx context.Context, c *client, args []string) error { return showCall(ctx, c, args[0]) }),
	})
	return cmd
}

// callsQuery holds the values of the flags.
type callsQuery struct {
	server, tool, state, since, until, principal, tenant, batch string
	limit                                                       int
}

func (q *callsQuery) values(now time.Time) (*callyard.ListCallsParams, error) {
	if q.limit < 1 {
		return nil, fail(exitUsage, "--limit must be at least 1.")
	}
	values := &callyard.ListCallsParams{Server: optional(q.server), Tool: optional(q.tool), Principal: optional(q.principal), Tenant: optional(q.tenant), Batch: optional(q.batch)}
	for _, state := range commaList(q.state) {
		if !schema.State(state).Known() {
			return nil, fail(exitUsage, "--state: %q is not a state of a call; see `callyard calls --help`.", oneLine(state))
		}
		values.State = append(values.State, callyard.ListCallsParamsState(state))
	}
	var err error
	if values.Since, err = momentOf("since", q.since, now); err == nil {
		values.Until, err = momentOf("until", q.until, now)
	}
	return values, err
}

// optional returns a pointer to value, or nil for the zero value, which omits the parameter.
func optional[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}

// deref returns the value of an optional member, or the zero value if it is missing.
func deref[T any](member *T) (value T) {
	if member != nil {
		value = *member
	}
	return value
}

// momentOf parses the time of a flag, in UTC. It returns nil if the flag is not set.
func momentOf(flag, text string, now time.Time) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	at, err := parseTime(text, now)
	if err != nil {
		return nil, fail(exitUsage, "--%s: %w", flag, err)
	}
	return new(at.UTC()), nil
}

// parseTime parses a time, or a duration before now.
func parseTime(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 100_000 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	ago, err := time.ParseDuration(text)
	if err != nil || ago < 0 {
		return time.Time{}, fail(exitUsage, "%q is not a time: use an age (90s, 15m, 2h, 7d) or a time such as 2026-01-02T15:04:05Z.", oneLine(text))
	}
	return now.Add(-ago), nil
}

func listCalls(ctx context.Context, c *client, query *callyard.ListCallsParams, limit int, now time.Time) error {
	all, err := readList[records.View](ctx, c, limit, func(most int, cursor string) request {
		query.Limit, query.Cursor = &most, optional(cursor)
		return with(c.api.ListCalls, query)
	})
	if err != nil {
		return err
	}
	return all.print(c, "calls", []string{"CALL", "STATE", "SERVER", "TOOL", "REQUESTED BY", "AGE", "TOOK", "WHY"}, func(v *records.View) []cell {
		row := cells(string(v.ID), "", string(v.Server), cmp.Or(v.Tool, v.Method), v.Principal, age(now.Sub(v.Created)), callTook(v), "")
		row[1] = callState(v)
		if v.Error != nil {
			row[7].text = v.Error.Detail
		}
		return row
	}, "There are more: use --limit or --since.\n")
}

func callState(v *records.View) cell {
	if v.State == schema.StateSucceeded && v.ToolError {
		return cell{"tool error", yellow}
	}
	return stateCell(string(v.State))
}

// callTook formats the time from acceptance to the end, or returns "" if the call has not ended.
func callTook(v *records.View) string {
	if v.Ended == nil {
		return ""
	}
	return shortTime(v.Ended.Sub(v.Created))
}

// shortTime formats a duration for people, rounded to a useful precision.
func shortTime(took time.Duration) string {
	switch {
	case took < 10*time.Millisecond:
		took = took.Round(10 * time.Microsecond)
	case took < 10*time.Second:
		took = took.Round(time.Millisecond)
	default:
		took = took.Round(time.Second)
	}
	return took.String()
}

// shownCall is one call: its record, and the data about it that is stored elsewhere.
type shownCall struct {
	records.View
	Result    json.RawMessage   `json:"result"`
	Problem   *callyard.Problem `json:"problem"`
	Decisions decisions         `json:"decisions"`
}

func showCall(ctx context.Context, c *client, id string) error {
	return show(ctx, c, with2(c.api.GetCall, id, (*callyard.GetCallParams)(nil)), func(v *shownCall) error { return v.write(c.out) })
}

// instant formats a time in UTC. It returns "" if there is none.
func instant(t *time.Time, layout string) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.UTC().Format(layout)
}

func (v *shownCall) write(out screen) error {
	at := func(t *time.Time) string { return instant(t, "2006-01-02 15:04:05.000 MST") }
	bytes := func(digest string, n int64) string {
		if n == 0 && digest == "" {
			return ""
		}
		return strings.TrimSpace(size(int(n)) + " " + digest)
	}
	when := func(is bool, text string) string {
		if !is {
			return ""
		}
		return text
	}
	why := ""
	switch {
	case v.Error != nil:
		why = string(v.Error.Kind) + ": " + v.Error.Detail
	case v.Problem != nil:
		why = cmp.Or(v.Problem.Detail, v.Problem.Title)
	}
	place := ""
	if v.BatchID != "" && v.Index != nil {
		place = string(v.BatchID) + ", call " + strconv.FormatInt(*v.Index, 10)
	}
	rows := [][]cell{cells("call", string(v.ID)), {{text: "state"}, callState(&v.View)}, cells("why", why), cells("tool", cmp.Or(v.Tool, v.Method)+" on "+string(v.Server)),
		cells("requested by", v.Principal), cells("for", v.Owner), cells("created", at(&v.Created)), cells("started", at(v.Started)), cells("ended", at(v.Ended)),
		cells("duration", callTook(&v.View)), cells("at the server", when(v.TookMs > 0, time.Duration(v.TookMs*float64(time.Millisecond)).String())),
		cells("worker", string(v.Worker)), cells("front door", v.FrontDoor), cells("trace", v.TraceID), cells("attempt", when(v.Attempt > 0, strconv.Itoa(v.Attempt))),
		cells("arguments", bytes(v.ArgumentsDigest, v.ArgumentBytes)), cells("result", bytes(v.ResultDigest, v.ResultBytes)), cells("durable", when(v.Durable, "yes")),
		cells("replayed", when(v.Replayed, "yes, from an earlier request with the same key")), cells("approval", string(v.ApprovalID)), cells("batch", place),
		cells("custom id", v.CustomID)}
	if err := out.sheet(append(rows, v.Decisions.rows()...)...); err != nil || len(v.Result) == 0 {
		return err
	}
	if err := out.text("\n" + out.paint(bold, "Result") + "\n"); err != nil {
		return err
	}
	return out.result(v.Result)
}
