package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
)

// batchesPage is the most batches that are asked for at once.
const batchesPage = 500

// batchStates are what --state takes.
var batchStates = []string{"receiving", "running", "canceling", "ended"}

// batchesCommand looks after batches that were made before, by whichever way.
func batchesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "batches",
		Short: "List batches, show one, or cancel it",
		Long: "batches lists the batches that you may see, newest first. To make one, and to fetch its results into a file, there is `callyard batch`. " +
			"What each of its calls came to: `callyard calls --batch ID`.",
		Example: "  callyard batches --state running\n  callyard batches show batch_06b2t8m3c0w3v2q5n7k9a1d4fz\n  callyard batches cancel batch_06b2t8m3c0w3v2q5n7k9a1d4fz",
		Args:    takes(0, 0),
	}
	state := cmd.Flags().String("state", "", "only those in this state: "+strings.Join(batchStates, ", "))
	limit := cmd.Flags().Int("limit", 50, "how many at most")
	offer(cmd, "state", batchStates...)
	cmd.RunE = withClient(func(cmd *cobra.Command, c *client, _ []string) error {
		if *limit < 1 {
			return fail(exitUsage, "--limit must be at least 1.")
		}
		return c.listBatches(cmd.Context(), *state, *limit, time.Now())
	})
	show := &cobra.Command{
		Use: "show ID", Short: "Show one batch, with what came of its calls", Args: takes(1, 1), ValidArgsFunction: completing(batchIDs),
		RunE: withClient(func(cmd *cobra.Command, c *client, args []string) error {
			return c.showBatch(cmd.Context(), with(c.api.GetBatch, args[0]))
		}),
	}
	cancel := &cobra.Command{
		Use: "cancel ID", Short: "Cancel a batch: nothing more starts; calls that run go on to their end", Args: takes(1, 1), ValidArgsFunction: completing(batchIDs),
		RunE: withClient(func(cmd *cobra.Command, c *client, args []string) error {
			return c.showBatch(cmd.Context(), with(c.api.CancelBatch, args[0]))
		}),
	}
	cmd.AddCommand(show, cancel)
	return cmd
}

// shownBatch is what the commands show of a batch.
type shownBatch struct {
	ID     string `json:"id"`
	State  string `json:"state"`
	Reason string `json:"reason"`
	Calls  uint64 `json:"calls"`
	Counts struct {
		Waiting    uint64 `json:"waiting"`
		Held       uint64 `json:"held"`
		Succeeded  uint64 `json:"succeeded"`
		ToolErrors uint64 `json:"tool_errors"`
		Failed     uint64 `json:"failed"`
		Denied     uint64 `json:"denied"`
		Expired    uint64 `json:"expired"`
		Canceled   uint64 `json:"canceled"`
		Unknown    uint64 `json:"unknown"`
	} `json:"counts"`
	Labels   map[string]string `json:"labels"`
	Priority int               `json:"priority"`
	Created  time.Time         `json:"created"`
	Expires  *time.Time        `json:"expires_at"`
	Ended    *time.Time        `json:"ended"`
}

// total is how many calls the batch has.
func (b *shownBatch) total() uint64 { return max(b.Calls, b.done()) }

// done is how many calls of the batch have ended.
func (b *shownBatch) done() uint64 {
	c := &b.Counts
	return c.Succeeded + c.Failed + c.Denied + c.Expired + c.Canceled + c.Unknown
}

func (c *client) listBatches(ctx context.Context, state string, limit int, now time.Time) error {
	all := []json.RawMessage{}
	var rows [][]cell
	var query callyard.ListBatchesParams
	if state != "" {
		query.State = (*callyard.ListBatchesParamsState)(&state)
	}
	next := ""
	for len(all) < limit {
		most := min(limit-len(all), batchesPage)
		query.Limit = &most
		var page struct {
			Batches []json.RawMessage `json:"batches"`
			Next    string            `json:"next"`
		}
		if _, err := c.report(ctx, with(c.api.ListBatches, &query), &page); err != nil {
			return err
		}
		for _, raw := range page.Batches {
			var b shownBatch
			if err := json.Unmarshal(raw, &b); err != nil {
				return c.foreign()
			}
			all = append(all, raw)
			rows = append(rows, []cell{
				{text: b.ID}, b.stateCell(), {text: number(b.total())}, {text: number(b.done())}, {text: number(b.done() - b.Counts.Succeeded)},
				{text: age(now.Sub(b.Created))}, {text: firstOf(b.Reason, labelText(b.Labels))},
			})
		}
		if next = page.Next; next == "" {
			break
		}
		query.Cursor = &next
	}
	if c.json {
		text, err := json.Marshal(struct {
			Batches []json.RawMessage `json:"batches"`
			Next    string            `json:"next,omitempty"`
		}{all, next})
		if err != nil {
			return fmt.Errorf("encoding the batches: %w", err)
		}
		return c.out.raw(text)
	}
	if err := c.out.table([]string{"BATCH", "STATE", "CALLS", "ENDED", "NO RESULT", "AGE", "NOTE"}, rows); err != nil {
		return err
	}
	if next != "" {
		return c.note.text("There are more: see --limit and --state.\n")
	}
	return nil
}

// showBatch shows the batch that a request answers with.
func (c *client) showBatch(ctx context.Context, q request) error {
	var b shownBatch
	raw, err := c.report(ctx, q, &b)
	if err != nil {
		return err
	}
	if b.ID == "" {
		return c.foreign()
	}
	if c.json {
		return c.out.raw(raw)
	}
	return b.write(c.out)
}

func (b *shownBatch) write(out screen) error {
	out.width = 0 // nothing of a single batch is cut
	at := func(t *time.Time) string {
		if t == nil || t.IsZero() {
			return ""
		}
		return t.UTC().Format("2006-01-02 15:04:05 MST")
	}
	priority := ""
	if b.Priority != 0 {
		priority = strconv.Itoa(b.Priority)
	}
	rows := [][]cell{{{text: "batch"}, {text: b.ID}}, {{text: "state"}, b.stateCell()}}
	for _, l := range []struct{ name, value string }{
		{"why", b.Reason}, {"labels", labelText(b.Labels)}, {"priority", priority}, {"created", at(&b.Created)}, {"expires", at(b.Expires)}, {"ended", at(b.Ended)},
		{"calls", number(b.total())},
	} {
		if l.value != "" {
			rows = append(rows, cells(l.name, l.value))
		}
	}
	n := &b.Counts
	for _, l := range []struct {
		name  string
		n     uint64
		paint colour
	}{
		{"waiting", n.Waiting, plain}, {"held", n.Held, yellow}, {"succeeded", n.Succeeded, green}, {"tool errors", n.ToolErrors, yellow}, {"failed", n.Failed, red},
		{"denied", n.Denied, red}, {"expired", n.Expired, red}, {"canceled", n.Canceled, yellow}, {"unknown", n.Unknown, red},
	} {
		if l.n > 0 {
			rows = append(rows, []cell{{text: l.name}, {number(l.n), l.paint}})
		}
	}
	return out.columns(rows)
}

func (b *shownBatch) stateCell() cell {
	switch b.State {
	case "completed":
		return cell{b.State, green}
	case "receiving", "running", "canceling":
		return cell{b.State, yellow}
	}
	return cell{b.State, red}
}

// labelText is the labels as they are given to --label.
func labelText(labels map[string]string) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, name+"="+labels[name])
	}
	return strings.Join(words, " ")
}
