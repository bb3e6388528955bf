package cli

import (
	"context"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
)

func replayCommand() *cobra.Command {
	replay := &cobra.Command{
		Use:   "replay ID",
		Short: "Make a new call with the arguments of an earlier one",
		Long: "replay calls the same tool with exactly the same arguments. The new call has an id of its own and goes through the policy, quotas and approvals. " +
			"Arguments are stored for durable calls, calls of batches and held calls; other calls cannot be replayed.",
		Example: "  callyard calls replay call_06b2t8m3c0w3v2q5n7k9a1d4fz",
		Args:    takes(1, 1),
		RunE: withClient(func(ctx context.Context, c *client, args []string) error {
			held, result, err := awaitCall(ctx, c, with2(c.api.ReplayCall, args[0], (*callyard.ReplayCallParams)(nil)))
			if err != nil {
				return err
			}
			return printCall(c, held, result, "The tool reported an error.")
		}),
	}
	replay.ValidArgsFunction = completing(callIDs)
	return replay
}
