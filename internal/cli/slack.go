package cli

import (
	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/approver"
)

func slackCommand() *cobra.Command {
	var public string
	manifest := &cobra.Command{
		Use:   "manifest",
		Short: "Print the manifest of the Slack app",
		Long: "manifest prints the app manifest for Slack: paste it at https://api.slack.com/apps, Create New App, From a manifest. " +
			"Without --public-url the app uses Socket mode, in which the approver connects to Slack and needs no public address. It does not require a running Callyard.",
		Example: "  callyard slack manifest\n  callyard slack manifest --public-url https://approve.example.com",
		Args:    takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			body, err := approver.SlackManifest(public, outputOf(cmd) == formatJSON)
			if err != nil {
				return fail(exitUsage, "%w", err)
			}
			_, err = cmd.OutOrStdout().Write(body)
			return err
		},
	}
	manifest.Flags().StringVar(&public, "public-url", "", "https URL at which Slack reaches the approver (default: Socket mode)")
	return group("slack", "Set up approvals in Slack", manifest)
}
