package cli

import (
	"context"
	"math"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/bom"
)

func stateCommand() *cobra.Command {
	export := &cobra.Command{
		Use: "export", Short: "Write sets, disabled tools, accepted definitions, policy and keys (without secrets) as JSON", Args: takes(0, 0),
		Example: "  callyard state export > state.json",
		RunE: withClient(func(ctx context.Context, c *client, _ []string) error {
			raw, err := c.report(ctx, c.api.GetState, new(map[string]any))
			if err != nil {
				return err
			}
			return c.out.document(raw)
		}),
	}
	var apply bool
	bring := &cobra.Command{
		Use: "import FILE", Short: "Show what a file would change, and with --apply change it", Args: takes(1, 1),
		Long: "import shows the differences between a file of `state export` and the state. With --apply, sets and disabled tools become those of the file, and definitions are accepted if the servers offer them now. " +
			"If somebody changes the state in between, nothing is imported. Policy and keys are compared only: a file has no secrets. FILE can be - for standard input.",
		Example: "  callyard state import state.json\n  callyard state import state.json --apply",
		RunE: withClient(func(ctx context.Context, c *client, args []string) error {
			return importState(ctx, c, args[0], apply)
		}),
	}
	bring.Flags().BoolVar(&apply, "apply", false, "change the state; without it the differences are shown only")
	return group("state", "Export and import sets, disabled tools and accepted definitions", export, bring)
}

func importState(ctx context.Context, c *client, path string, apply bool) error {
	file, err := untilInterrupt(ctx, func() ([]byte, error) { return readInput(path, c.in, math.MaxInt32) })
	if ctx.Err() != nil {
		return fail(exitInterrupted, "Interrupted.")
	}
	if err != nil {
		return fail(exitUsage, "The state cannot be read: %w", err)
	}
	put := func(params *callyard.PutStateParams) request {
		return with3(c.api.PutStateWithBody, params, mediaJSON, content(bom.Trim(file)))
	}
	var changes callyard.StateChanges
	raw, err := c.report(ctx, put(&callyard.PutStateParams{DryRun: new(true)}), &changes)
	if err == nil && apply && len(changes.Changes) > 0 {
		etag := changes.Etag
		changes = callyard.StateChanges{}
		raw, err = c.report(ctx, put(&callyard.PutStateParams{IfMatch: &etag}), &changes)
	}
	if err != nil {
		return err
	}
	if c.out.structured() {
		err = c.out.document(raw)
	} else {
		err = showChanges(c, &changes)
	}
	if err == nil && changes.Failed > 0 {
		return ended(exitUnmet)
	}
	return err
}

func showChanges(c *client, changes *callyard.StateChanges) error {
	if len(changes.Changes) == 0 {
		return c.out.text("The file is the present state: there is nothing to change.\n")
	}
	rows := make([][]cell, 0, len(changes.Changes))
	for _, one := range changes.Changes {
		note := ""
		if one.Note != nil {
			note = *one.Note
		}
		if one.Error != nil {
			note = *one.Error
		}
		rows = append(rows, cells(string(one.Part), one.Name, string(one.Action), map[bool]string{true: "done"}[one.Done], note))
	}
	if err := c.out.table([]string{"PART", "NAME", "CHANGE", "STATE", "NOTE"}, rows); err != nil {
		return err
	}
	if changes.DryRun {
		return c.note.text("Nothing was changed; --apply imports the file.\n")
	}
	if changes.Failed == 0 {
		return c.note.text(count(len(changes.Changes), "change") + " done.\n")
	}
	return c.note.text(count(int(changes.Failed), "change") + " failed.\n")
}
