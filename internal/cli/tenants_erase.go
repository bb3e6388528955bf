package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
)

// eraseTenantCommand erases a tenant of a running Callyard.
func eraseTenantCommand() *cobra.Command {
	var confirm string
	cmd := &cobra.Command{
		Use:   "erase TENANT",
		Short: "Erase a tenant: revoke its keys, end its calls, and destroy its data key",
		Long: "erase erases a tenant that is no longer in the configuration. It revokes the API keys of the tenant, withdraws its held calls, cancels and deletes its batches, removes its sets of tools and the credentials of its people at MCP servers, and ends the access that they gave to programs. Then it destroys the data key of the tenant, so that nobody can read its stored arguments and results. " +
			"This cannot be undone. If calls still run, it says so and keeps the data key: run it again when they have ended. If Callyard has no data of a tenant with this id, it says so and exits with 3. Call records without payloads, usage and the audit record stay.",
		Example: "  callyard tenants erase billing --confirm billing",
		Args:    takes(1, 1),
	}
	cmd.Flags().StringVar(&confirm, "confirm", "", "the id of the tenant, repeated as a confirmation")
	cmd.RunE = withClient(func(ctx context.Context, c *client, args []string) error {
		if confirm != args[0] {
			return fail(exitUsage, "This cannot be undone; confirm it with --confirm %s.", args[0])
		}
		var done callyard.TenantErasure
		raw, err := c.report(ctx, with2(c.api.EraseTenant, args[0], &callyard.EraseTenantParams{Confirm: confirm}), &done)
		switch {
		case err != nil:
			return err
		case c.out.structured():
			err = c.out.document(raw)
		case done.Found:
			err = c.out.text(erasedText(&done))
		}
		if err == nil && !done.Found {
			err = fail(exitRefused, "Callyard has no data of a tenant %s: no API keys, calls, sets, credentials or data key. Check the id.", oneLine(done.ID))
		}
		return err
	})
	return cmd
}

// erasedText summarizes the erasure.
func erasedText(done *callyard.TenantErasure) string {
	var text strings.Builder
	fmt.Fprintf(&text, "The tenant %s was erased: %s revoked, %s withdrawn, %s canceled, %s deleted, %s, %s and %s at MCP servers removed.\n",
		oneLine(done.ID), count(int(done.Keys), "API key"), count(int(done.Held), "held call"), count(int(done.Canceled), "durable call"), countOf(int(done.Batches), "batch", "batches"),
		countOf(int(done.Sets), "set of tools", "sets of tools"), count(int(done.Permissions), "standing permission"), count(int(done.Credentials), "credential"))
	if done.Encrypted {
		text.WriteString("Its data key is destroyed: nobody can read what it stored.\n")
	} else {
		text.WriteString("What it stored was not encrypted (encryption.key_file), and can be read until its retention ends.\n")
	}
	return text.String()
}
