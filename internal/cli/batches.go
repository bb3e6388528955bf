package cli

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/clients/go/batchfile"
)

// batchStates lists the values of --state.
var batchStates = []string{"receiving", "running", "canceling", "ended"}

// batchesCommand lists and manages existing batches, whichever client created them.
func batchesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "batches",
		Short: "List, show and cancel batches",
		Long: "batches lists the batches that you can see, newest first. `callyard batch` creates a batch and writes its results to a file. " +
			"`callyard calls --batch ID` lists the outcomes of its calls.",
		Example: "  callyard batches --state running\n  callyard batches show batch_06b2t8m3c0w3v2q5n7k9a1d4fz\n  callyard batches cancel batch_06b2t8m3c0w3v2q5n7k9a1d4fz",
		Args:    takes(0, 0),
	}
	state := cmd.Flags().String("state", "", "only batches in this state: "+strings.Join(batchStates, ", "))
	limit := cmd.Flags().Int("limit", 50, "maximum number to list")
	offer(cmd, "state", batchStates...)
	cmd.RunE = withClient(func(ctx context.Context, c *client, _ []string) error {
		if *limit < 1 {
			return fail(exitUsage, "--limit must be at least 1.")
		}
		if err := oneOf("state", *state, append([]string{""}, batchStates...)...); err != nil {
			return err
		}
		return listBatches(ctx, c, *state, *limit, time.Now())
	})
	cmd.AddCommand(&cobra.Command{
		Use: "show ID", Short: "Show one batch with the outcomes of its calls", Args: takes(1, 1), ValidArgsFunction: completing(batchIDs),
		RunE: withClient(func(ctx context.Context, c *client, args []string) error {
			return showBatch(ctx, c, with(c.api.GetBatch, args[0]))
		}),
	}, &cobra.Command{
		Use: "cancel ID", Short: "Cancel a batch: no further calls start; running calls finish", Args: takes(1, 1), ValidArgsFunction: completing(batchIDs),
		RunE: withClient(func(ctx context.Context, c *client, args []string) error {
			return showBatch(ctx, c, with(c.api.CancelBatch, args[0]))
		}),
	})
	return cmd
}

// done returns the number of calls of the batch that have ended.
func done(b *batchfile.Batch) uint64 {
	c := &b.Counts
	return uint64(c.Succeeded + c.Failed + c.Denied + c.Expired + c.Canceled + c.Unknown)
}

func listBatches(ctx context.Context, c *client, state string, limit int, now time.Time) error {
	var query callyard.ListBatchesParams
	if state != "" {
		query.State = (*callyard.ListBatchesParamsState)(&state)
	}
	all, err := readList[batchfile.Batch](ctx, c, limit, func(most int, cursor string) request {
		query.Limit, query.Cursor = &most, optional(cursor)
		return with(c.api.ListBatches, &query)
	})
	if err != nil {
		return err
	}
	return all.print(c, "batches", []string{"BATCH", "STATE", "CALLS", "ENDED", "NO RESULT", "AGE", "NOTE"}, func(b *batchfile.Batch) []cell {
		row := cells(b.ID, "", number(b.Total()), number(done(b)), number(done(b)-uint64(b.Counts.Succeeded)), age(now.Sub(b.Created)), cmp.Or(deref(b.Reason), labelText(b.Labels, " ")))
		row[1] = stateCell(string(b.State))
		return row
	}, "There are more: use --limit or --state.\n")
}

// showBatch prints the batch in the response to a request.
func showBatch(ctx context.Context, c *client, q request) error {
	return show(ctx, c, q, func(b *batchfile.Batch) error {
		if b.ID == "" {
			return c.foreign()
		}
		return writeBatch(c.out, b)
	})
}

func writeBatch(out screen, b *batchfile.Batch) error {
	at := func(t *time.Time) string { return instant(t, "2006-01-02 15:04:05 MST") }
	counted := func(name string, n int64, paint colour) []cell {
		if n == 0 {
			return cells(name, "")
		}
		return []cell{{text: name}, {number(uint64(n)), paint}}
	}
	priority := ""
	if p := deref(b.Priority); p != 0 {
		priority = strconv.FormatInt(p, 10)
	}
	n := &b.Counts
	return out.sheet(cells("batch", b.ID), []cell{{text: "state"}, stateCell(string(b.State))}, cells("why", deref(b.Reason)), cells("labels", labelText(b.Labels, " ")),
		cells("priority", priority), cells("created", at(&b.Created)), cells("expires", at(&b.ExpiresAt)), cells("ended", at(b.Batch.Ended)), cells("payloads", deletedPayloads(&b.Batch)), cells("calls", number(b.Total())), cells("no such server", oneLine(strings.Join(b.MissingServers, " "))),
		counted("waiting", n.Waiting, plain), counted("held", n.Held, yellow), counted("succeeded", n.Succeeded, green), counted("tool errors", n.ToolErrors, yellow),
		counted("failed", n.Failed, red), counted("denied", n.Denied, red), counted("expired", n.Expired, red), counted("canceled", n.Canceled, yellow),
		counted("unknown", n.Unknown, red))
}

// deletedPayloads returns a note that the payloads of a batch are deleted, or "" if they are not.
func deletedPayloads(b *callyard.Batch) string {
	if !deref(b.PayloadsDeleted) {
		return ""
	}
	return "deleted: the retention of the tenant has ended"
}

// labelText joins the labels in the format of --label.
func labelText(labels map[string]string, separator string) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, name+"="+labels[name])
	}
	return strings.Join(words, separator)
}
