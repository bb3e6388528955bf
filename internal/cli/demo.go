package cli

import (
	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/demo"
	"github.com/callyard/callyard/internal/setup"
)

func demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo-server",
		Short: "Be the demo MCP server, on standard input and output",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return demo.Serve(cmd.Context(), setup.Version()) },
	}
}
