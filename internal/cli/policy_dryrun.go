package cli

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
)

// dryRunQuery holds the values of the flags of `policy dry-run`.
type dryRunQuery struct {
	since, until string
	limit        int64
}

func dryRunCommand() *cobra.Command {
	var q dryRunQuery
	cmd := &cobra.Command{
		Use:   "dry-run FILE [--since 7d]",
		Short: "Compare a draft policy with the decisions on recorded calls",
		Long: "dry-run applies the policy in FILE to the recorded calls of all callers, as a front door would, and compares the decisions with those that were made. " +
			"It changes nothing. If a rule reads arguments that are not stored, the decision on the call is counted as unknown.",
		Example: "  callyard policy dry-run policy.yaml --since 7d\n  callyard policy dry-run policy.yaml --since 1h --json",
		Args:    takes(1, 1),
	}
	cmd.Flags().StringVar(&q.since, "since", "7d", "only calls since this time: an age such as 90s, 15m, 2h or 7d, or a time such as 2026-01-02T15:04:05Z")
	cmd.Flags().StringVar(&q.until, "until", "", "only calls before this time, in the same formats")
	cmd.Flags().Int64Var(&q.limit, "limit", 50, "maximum number of changed calls to list; all are counted")
	cmd.RunE = withClient(func(ctx context.Context, c *client, args []string) error {
		body, err := q.request(args[0], time.Now())
		if err != nil {
			return err
		}
		return show(ctx, c, with(c.api.DryRunPolicy, body), func(d *callyard.PolicyDryRun) error { return showDryRun(c.out, d) })
	})
	return cmd
}

// request returns the body of the request.
func (q *dryRunQuery) request(path string, now time.Time) (body callyard.PolicyDryRunRequest, err error) {
	if q.limit < 0 || q.limit > 1000 {
		return body, fail(exitUsage, "--limit must be from 0 to 1000.")
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return body, fail(exitUsage, "The policy cannot be read: %w.", err)
	}
	body = callyard.PolicyDryRunRequest{Policy: string(source), Limit: &q.limit}
	if body.Since, err = momentOf("since", q.since, now); err == nil {
		body.Until, err = momentOf("until", q.until, now)
	}
	return body, err
}

// showDryRun prints the counts by rule, the sum, and the calls that change.
func showDryRun(out screen, d *callyard.PolicyDryRun) error {
	rows := make([][]cell, 0, len(d.Rules))
	for i := range d.Rules {
		r := &d.Rules[i]
		rule := r.Rule
		if rule == "" {
			rule = "(no rule)"
		}
		row := []cell{{text: rule}}
		for _, n := range []int64{r.Allowed, r.Held, r.Refused, r.Unknown, r.Changed} {
			row = append(row, cell{text: strconv.FormatInt(n, 10)})
		}
		rows = append(rows, row)
	}
	if err := out.table([]string{"RULE", "ALLOWED", "HELD", "REFUSED", "UNKNOWN", "CHANGED"}, rows); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s: %d of them decided differently.\n", count(int(d.Calls), "recorded call"), d.Changed)
	for _, l := range []struct {
		n    int64
		text string
	}{
		{d.Unknown.Arguments, "cannot be determined: a rule reads arguments that are not stored."},
		{d.Unknown.Groups, "cannot be determined: a rule reads groups of the caller that were not recorded."},
		{d.Unknown.Tools, "cannot be determined: the tool does not exist any more."},
		{d.NotJudged, "were refused before the policy was evaluated, and are not counted above."},
	} {
		if l.n > 0 {
			fmt.Fprintf(&b, "%d %s\n", l.n, l.text)
		}
	}
	if d.Truncated != nil && *d.Truncated {
		b.WriteString("There are more calls; the oldest were left out. Use --since and --until.\n")
	}
	if err := out.text(b.String()); err != nil || len(d.Changes) == 0 {
		return err
	}
	rows = rows[:0]
	for i := range d.Changes {
		c := &d.Changes[i]
		rows = append(rows, cells(c.ID, c.Server, c.Tool, c.Principal, string(c.Was), string(c.Now), deref(c.NowRule)))
	}
	if err := out.text("\n"); err != nil {
		return err
	}
	return out.table([]string{"CALL", "SERVER", "TOOL", "REQUESTED BY", "WAS", "NOW", "RULE"}, rows)
}
