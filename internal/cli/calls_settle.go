package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
)

// addChangeCommands adds the subcommands of `calls` that change durable calls: cancel a call, and settle
// or retry a call whose outcome is unknown.
func addChangeCommands(calls *cobra.Command) *cobra.Command {
	cancel := &cobra.Command{
		Use:   "cancel ID",
		Short: "Cancel a held or durable call",
		Args:  takes(1, 1),
		RunE: withClient(func(ctx context.Context, c *client, args []string) error {
			return changeCall(ctx, c, args[0], with(c.api.CancelCall, args[0]))
		}),
	}
	settle := &cobra.Command{
		Use:   "settle ID --as done|failed|run-again --reason TEXT",
		Short: "Settle a call whose outcome is unknown, or that failed",
		Long: "The outcome of a call is unknown if it was sent to its server and no answer arrived: it may have run. Check its effects, then settle it " +
			"--as done (it has run), --as failed (it has not run and will not run) or --as run-again (run it again). Your name and the reason are stored with the call.",
		Args: takes(1, 1),
	}
	as := settle.Flags().String("as", "", "done, failed or run-again")
	reason := settle.Flags().String("reason", "", "reason, stored with the call")
	settle.RunE = withClient(func(ctx context.Context, c *client, args []string) error {
		switch *as {
		case "done", "failed", "run-again":
		default:
			return fail(exitUsage, "--as must be done, failed or run-again.")
		}
		if strings.TrimSpace(*reason) == "" {
			return fail(exitUsage, "--reason is required: state how you know the outcome. It is stored with the call.")
		}
		return settleCall(ctx, c, args[0], *as, *reason)
	})
	retry := &cobra.Command{
		Use:   "retry ID",
		Short: "Retry a call that failed or whose outcome is unknown",
		Long:  "retry is `settle --as run-again`. A call whose outcome is unknown may already have run; then it runs twice.",
		Args:  takes(1, 1),
	}
	why := retry.Flags().String("reason", "retried manually", "reason, stored with the call")
	retry.RunE = withClient(func(ctx context.Context, c *client, args []string) error {
		return settleCall(ctx, c, args[0], "run-again", *why)
	})
	for _, cmd := range []*cobra.Command{cancel, settle, retry} {
		cmd.ValidArgsFunction = completing(openCallIDs)
	}
	offer(settle, "as", "done", "failed", "run-again")
	calls.AddCommand(cancel, settle, retry, replayCommand())
	return calls
}

func settleCall(ctx context.Context, c *client, id, as, reason string) error {
	return changeCall(ctx, c, id, with2(c.api.SettleCall, id, callyard.SettleRequest{As: callyard.SettleRequestAs(as), Reason: reason}))
}

// changedCall is a call after a change.
type changedCall struct {
	ID      string            `json:"id"`
	State   string            `json:"state"`
	Settled string            `json:"settled"`
	Problem *callyard.Problem `json:"problem"`
}

// changeCall requests a change of a call and prints the call's new state.
func changeCall(ctx context.Context, c *client, id string, change request) error {
	return show(ctx, c, change, func(s *changedCall) error {
		if s.State == "" {
			return c.foreign()
		}
		state, more := stateCell(s.State), ""
		if s.State == "canceled" {
			state.paint = yellow // requested by the user
		}
		switch {
		case s.Settled != "":
			more = " (settled by " + oneLine(s.Settled) + ")"
		case s.Problem != nil:
			more = ": " + oneLine(cmp.Or(s.Problem.Detail, s.Problem.Title))
		}
		return c.out.text(fmt.Sprintf("%s is %s%s\n", oneLine(cmp.Or(s.ID, id)), c.out.paint(state.paint, oneLine(s.State)), more))
	})
}
