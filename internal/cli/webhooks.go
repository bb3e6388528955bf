package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
)

// deliveryStates lists the values of --state.
var deliveryStates = []string{string(callyard.ListWebhookDeliveriesParamsStateDead), string(callyard.ListWebhookDeliveriesParamsStateWaiting)}

// deliveriesMost is the maximum number of deliveries in one answer. The list has no pages.
const deliveriesMost = 1000

// webhooksCommand lists the deliveries of webhooks and sends them again.
func webhooksCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "webhooks",
		Short: "List webhook deliveries, and send them again",
		Long: "webhooks lists the deliveries of webhooks (callback_url) that were given up, oldest first, with the reason. With --state waiting it lists those whose attempts continue. " +
			"With --approver it lists those of approval events (approver.notify) at the approver. " +
			"Administrators of the default tenant see the deliveries of all tenants, those of another one see their own. --json has the whole address of each receiver, which may hold a secret; the table has its host and port.",
		Example: "  callyard webhooks --receiver hooks.example.com:443\n  callyard webhooks --state waiting --json\n  callyard webhooks retry call_06b2t8m3c0w3v2q5n7k9a1d4fz\n  callyard webhooks --approver --approver-url https://approve.example.com",
		Args:    takes(0, 0),
	}
	flags := cmd.Flags()
	state := flags.String("state", deliveryStates[0], "dead: deliveries that were given up; waiting: deliveries whose attempts continue")
	receiver := flags.String("receiver", "", "only deliveries to this receiver, as `HOST:PORT`")
	limit := flags.Int("limit", 50, "maximum number to list, 1000 at most")
	offer(cmd, "state", deliveryStates...)
	cmd.PersistentFlags().Bool("approver", false, "the deliveries of approval events (approver.notify), from the approver")
	cmd.PersistentFlags().String("approver-url", "", "address of the approver, for --approver (CALLYARD_APPROVER_URL, default "+defaultApproverURL+" if the front door is on this machine)")
	at := func(run asking) func(*cobra.Command, []string) error { // both have the same operations
		return func(cmd *cobra.Command, args []string) error {
			switch {
			case asksApprover(cmd):
				return withApprover(run)(cmd, args)
			case textFlag(cmd, "approver-url") != "":
				return fail(exitUsage, "--approver-url needs --approver.")
			}
			return withClient(run)(cmd, args)
		}
	}
	completingFlag(cmd, "receiver", func(ctx context.Context, c *client, _ []string) (names []string, err error) {
		all, err := readDeliveries(ctx, c, *state)
		for i := range all {
			names = append(names, all[i].Receiver)
		}
		slices.Sort(names)
		return slices.Compact(names), err
	})
	cmd.RunE = at(func(ctx context.Context, c *client, _ []string) error {
		if *limit < 1 || *limit > deliveriesMost {
			return fail(exitUsage, "--limit must be between 1 and %d.", deliveriesMost)
		}
		if err := oneOf("state", *state, deliveryStates...); err != nil {
			return err
		}
		return listDeliveries(ctx, c, deliveriesQuery(*state, *receiver, *limit), time.Now())
	})
	cmd.AddCommand(&cobra.Command{
		Use:   "retry ID",
		Short: "Send a webhook delivery that was given up again",
		Long:  "retry restarts a delivery that was given up, with all its attempts; the first one is made at once. The receiver gets the same webhook-id.",
		Args:  takes(1, 1), ValidArgsFunction: completing(deadDeliveryIDs),
		RunE: at(func(ctx context.Context, c *client, args []string) error {
			return show(ctx, c, with(c.api.RetryWebhookDelivery, args[0]), func(d *callyard.WebhookDelivery) error {
				if d.ID == "" {
					return c.foreign()
				}
				return c.out.text(oneLine(fmt.Sprintf("%s is sent to %s again.", d.ID, d.Receiver)) + "\n")
			})
		}),
	})
	return cmd
}

// readDeliveries returns the deliveries in a state, for completion.
func readDeliveries(ctx context.Context, c *client, state string) ([]callyard.WebhookDelivery, error) {
	var all callyard.WebhookDeliveryList
	_, err := c.report(ctx, with(c.api.ListWebhookDeliveries, deliveriesQuery(state, "", completeMost)), &all)
	return all.Deliveries, err
}

func deliveriesQuery(state, receiver string, limit int) *callyard.ListWebhookDeliveriesParams {
	return &callyard.ListWebhookDeliveriesParams{State: new(callyard.ListWebhookDeliveriesParamsState(state)), Receiver: optional(receiver), Limit: new(int64(limit))}
}

// deadDeliveryIDs returns the ids of deliveries that were given up.
func deadDeliveryIDs(ctx context.Context, c *client, _ []string) (found []string, err error) {
	all, err := readDeliveries(ctx, c, deliveryStates[0])
	for i := range all {
		found = append(found, described(all[i].ID, all[i].Type+" "+all[i].Receiver))
	}
	return found, err
}

func listDeliveries(ctx context.Context, c *client, query *callyard.ListWebhookDeliveriesParams, now time.Time) error {
	return show(ctx, c, with(c.api.ListWebhookDeliveries, query), func(all *callyard.WebhookDeliveryList) error {
		rows := make([][]cell, 0, len(all.Deliveries))
		for i := range all.Deliveries {
			d := &all.Deliveries[i]
			next := ""
			if d.NextAttemptAt != nil {
				next = "in " + age(d.NextAttemptAt.Sub(now))
			}
			rows = append(rows, cells(d.ID, d.Receiver, d.Type, deref(d.Tenant), decimal(d.Attempts), age(now.Sub(d.CreatedAt)), next, cmp.Or(deref(d.Reason), deref(d.LastError))))
		}
		if err := c.out.table([]string{"ID", "RECEIVER", "EVENT", "TENANT", "ATTEMPTS", "AGE", "NEXT", "WHY"}, rows); err != nil || all.Total <= int64(len(rows)) {
			return err
		}
		return c.note.text(fmt.Sprintf("%d of %d: use --limit or --receiver.\n", len(rows), all.Total))
	})
}
