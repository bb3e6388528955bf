package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/record"
	"github.com/callyard/callyard/pkg/schema"
)

// callsCommand reads the execution log.
func callsCommand() *cobra.Command {
	var q callsQuery
	cmd := &cobra.Command{
		Use:   "calls [ID]",
		Short: "List what became of calls, or show one of them",
		Long: "calls lists the calls that left a record, newest first. With the id of a call it shows all that is known of that one. " +
			"Records hold digests of arguments and results, never the bytes.",
		Example: "  callyard calls --state failed,unknown --since 1h\n  callyard calls --server files --tool read --limit 200 --json\n  callyard calls call_06b2t8m3c0w3v2q5n7k9a1d4fz",
		Args:    takes(0, 1),
	}
	flags := cmd.Flags()
	flags.StringVar(&q.server, "server", "", "only calls of this server")
	flags.StringVar(&q.tool, "tool", "", "only calls of this tool")
	flags.StringVar(&q.state, "state", "", "only those in this state; several with commas: held, queued, running, succeeded, failed, denied, expired, canceled, unknown")
	flags.StringVar(&q.since, "since", "", "only those from this time on: 90s, 15m, 2h, 7d, or like 2026-01-02T15:04:05Z")
	flags.StringVar(&q.until, "until", "", "only those before this time, in the same forms")
	flags.StringVar(&q.principal, "principal", "", "only those that this principal asked for")
	flags.StringVar(&q.batch, "batch", "", "only those of this batch")
	flags.IntVar(&q.limit, "limit", 50, "how many at most")
	cmd.ValidArgsFunction = completing(callIDs)
	completingFlag(cmd, "server", serverIDs)
	completingFlag(cmd, "batch", batchIDs)
	offer(cmd, "state", "held", "queued", "running", "succeeded", "failed", "denied", "expired", "canceled", "unknown")
	cmd.RunE = withClient(func(cmd *cobra.Command, c *client, args []string) error {
		if len(args) == 1 {
			return c.showCall(cmd.Context(), args[0])
		}
		now := time.Now()
		values, err := q.values(now)
		if err != nil {
			return err
		}
		return c.listCalls(cmd.Context(), values, q.limit, now)
	})
	return cmd
}

// callsQuery is what the flags say.
type callsQuery struct {
	server, tool, state, since, until, principal, batch string
	limit                                               int
}

// callsPage is the most that is asked for at once.
const callsPage = 500

func (q *callsQuery) values(now time.Time) (*callyard.ListCallsParams, error) {
	if q.limit < 1 {
		return nil, fail(exitUsage, "--limit must be at least 1.")
	}
	values := &callyard.ListCallsParams{Server: given(q.server), Tool: given(q.tool), Principal: given(q.principal), Batch: given(q.batch)}
	for _, state := range strings.Split(q.state, ",") {
		if state = strings.TrimSpace(state); state != "" && !schema.State(state).Known() {
			return nil, fail(exitUsage, "--state: %q is no state of a call; see `callyard calls --help`.", oneLine(state))
		}
		if state != "" {
			values.State = append(values.State, callyard.ListCallsParamsState(state))
		}
	}
	for _, l := range []struct {
		flag, text string
		to         **time.Time
	}{{"since", q.since, &values.Since}, {"until", q.until, &values.Until}} {
		if l.text == "" {
			continue
		}
		at, err := moment(l.text, now)
		if err != nil {
			return nil, fail(exitUsage, "--%s: %w", l.flag, err)
		}
		at = at.UTC()
		*l.to = &at
	}
	return values, nil
}

// given is a parameter that is left out where it is empty.
func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// moment reads a time, or how long ago it was.
func moment(text string, now time.Time) (time.Time, error) {
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
		return time.Time{}, fail(exitUsage, "%q is no time: write how long ago (90s, 15m, 2h, 7d), or a time like 2026-01-02T15:04:05Z.", oneLine(text))
	}
	return now.Add(-ago), nil
}

// listCalls follows the pages until there are enough calls.
func (c *client) listCalls(ctx context.Context, query *callyard.ListCallsParams, limit int, now time.Time) error {
	all := []json.RawMessage{}
	var rows [][]cell
	next := ""
	for len(all) < limit {
		most := min(limit-len(all), callsPage)
		query.Limit = &most
		var page struct {
			Calls []json.RawMessage `json:"calls"`
			Next  string            `json:"next"`
		}
		if _, err := c.report(ctx, with(c.api.ListCalls, query), &page); err != nil {
			return err
		}
		for _, raw := range page.Calls {
			var v record.View
			if err := json.Unmarshal(raw, &v); err != nil {
				return c.foreign()
			}
			all = append(all, raw)
			rows = append(rows, callRow(&v, now))
		}
		if next = page.Next; next == "" {
			break
		}
		query.Cursor = &next
	}
	if c.json {
		text, err := json.Marshal(struct {
			Calls []json.RawMessage `json:"calls"`
			Next  string            `json:"next,omitempty"`
		}{all, next})
		if err != nil {
			return err
		}
		return c.out.raw(text)
	}
	if err := c.out.table([]string{"CALL", "STATE", "SERVER", "TOOL", "ASKED BY", "AGE", "TOOK", "WHY"}, rows); err != nil {
		return err
	}
	if next != "" {
		return c.note.text("There are more: see --limit and --since.\n")
	}
	return nil
}

func callRow(v *record.View, now time.Time) []cell {
	tool := v.Tool
	if tool == "" {
		tool = v.Method
	}
	why := ""
	if v.Error != nil {
		why = v.Error.Detail
	}
	return []cell{
		{text: v.ID}, callState(v), {text: v.Server}, {text: tool}, {text: v.Principal}, {text: age(now.Sub(v.Created))}, {text: callTook(v)}, {text: why},
	}
}

func callState(v *record.View) cell {
	switch {
	case v.State == schema.StateSucceeded && v.ToolError:
		return cell{"tool error", yellow}
	case v.State == schema.StateSucceeded:
		return cell{string(v.State), green}
	case !v.State.Ended():
		return cell{string(v.State), yellow}
	}
	return cell{string(v.State), red}
}

// callTook is the time from coming in to the end, "" for a call without one.
func callTook(v *record.View) string {
	if v.Ended == nil {
		return ""
	}
	took := v.Ended.Sub(v.Created)
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

// shownCall is one call: its record, and what is kept of it elsewhere.
type shownCall struct {
	record.View
	Result  json.RawMessage `json:"result"`
	Problem *problem        `json:"problem"`
}

func (c *client) showCall(ctx context.Context, id string) error {
	var v shownCall
	raw, err := c.report(ctx, func(ctx context.Context, edit ...callyard.RequestEditorFn) (*http.Response, error) {
		return c.api.GetCall(ctx, id, nil, edit...)
	}, &v)
	if err != nil {
		return err
	}
	if c.json {
		return c.out.raw(raw)
	}
	return v.write(c.out)
}

func (v *shownCall) write(out screen) error {
	out.width = 0 // nothing of a single call is cut
	rows := [][]cell{{{text: "call"}, {text: v.ID}}, {{text: "state"}, callState(&v.View)}}
	at := func(t *time.Time) string {
		if t == nil || t.IsZero() {
			return ""
		}
		return t.UTC().Format("2006-01-02 15:04:05.000 MST")
	}
	bytes := func(digest string, n int64) string {
		if n == 0 && digest == "" {
			return ""
		}
		return strings.TrimSpace(size(int(n)) + " " + digest)
	}
	why := ""
	switch {
	case v.Error != nil:
		why = string(v.Error.Kind) + ": " + v.Error.Detail
	case v.Problem != nil:
		why = firstOf(v.Problem.Detail, v.Problem.Title)
	}
	what := v.Method
	if v.Tool != "" {
		what = v.Tool
	}
	place := ""
	if v.BatchID != "" && v.Index != nil {
		place = v.BatchID + ", call " + strconv.FormatInt(*v.Index, 10)
	}
	ran, attempt := "", ""
	if v.TookMs > 0 {
		ran = time.Duration(v.TookMs * float64(time.Millisecond)).String()
	}
	if v.Attempt > 0 {
		attempt = strconv.Itoa(v.Attempt)
	}
	durable, replayed := "", ""
	if v.Durable {
		durable = "yes"
	}
	if v.Replayed {
		replayed = "yes, it is the result of an earlier request with the same key"
	}
	for _, l := range []struct{ name, value string }{
		{"why", why}, {"tool", what + " on " + v.Server}, {"asked by", v.Principal}, {"for", v.Owner}, {"came in", at(&v.Created)}, {"started", at(v.Started)},
		{"ended", at(v.Ended)}, {"in all", callTook(&v.View)}, {"at the server", ran}, {"worker", v.Worker}, {"front door", v.FrontDoor}, {"attempt", attempt},
		{"arguments", bytes(v.ArgumentsDigest, v.ArgumentBytes)}, {"result", bytes(v.ResultDigest, v.ResultBytes)}, {"durable", durable}, {"replayed", replayed},
		{"approval", v.ApprovalID}, {"batch", place}, {"custom id", v.CustomID},
	} {
		if l.value != "" {
			rows = append(rows, cells(l.name, l.value))
		}
	}
	if err := out.columns(rows); err != nil {
		return err
	}
	if len(v.Result) == 0 {
		return nil
	}
	if err := out.text("\n" + out.paint(bold, "Result") + "\n"); err != nil {
		return err
	}
	return out.result(v.Result)
}
