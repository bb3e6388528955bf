package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
)

// foundTools holds the members of GET /tools/search that are used here.
type foundTools struct {
	Tools []struct {
		Server    string `json:"server"`
		Tool      string `json:"tool"`
		Signature string `json:"signature"`
		Summary   string `json:"summary"`
		Risk      string `json:"risk"`
		Decision  string `json:"decision"`
	} `json:"tools"`
	Unmatched []string `json:"unmatched"`
	Note      string   `json:"ranking_note"`
	Unknown   []string `json:"unknown"`
}

// maxFound limits the number of search results.
const maxFound = 100

func searchToolsCommand() *cobra.Command {
	var server, set string
	var limit int
	cmd := &cobra.Command{
		Use:   "search WORDS...",
		Short: "Find tools by what they do",
		Long: "search shows the tools that match the words, best first, each with its signature and the decision of the policy on a call of yours without arguments. " +
			"If no tool matches, nothing is shown.\n\nExit code: 0 tools were found, 1 no tool matches.",
		Example: "  callyard tools search read a text file\n  callyard tools search --server files --limit 3 rename",
		Args:    takes(1, -1),
	}
	cmd.Flags().StringVar(&server, "server", "", "only tools of this server")
	cmd.Flags().StringVar(&set, "set", "", "only tools of this set")
	cmd.Flags().IntVar(&limit, "limit", 10, "maximum number of tools")
	cmd.RunE = withClient(func(ctx context.Context, c *client, args []string) error {
		if limit < 1 || limit > maxFound {
			return fail(exitUsage, "--limit must be from 1 to %d.", maxFound)
		}
		q := callyard.SearchToolsParams{Q: strings.Join(args, " "), Server: optional(server), Set: optional(set), Limit: new(limit)}
		var found foundTools
		raw, err := c.report(ctx, with(c.api.SearchTools, &q), &found)
		if err != nil {
			return err
		}
		if c.out.structured() {
			err = c.out.document(raw)
		} else if len(found.Tools) > 0 {
			rows := make([][]cell, 0, len(found.Tools))
			for _, t := range found.Tools {
				rows = append(rows, cells(t.Server, t.Signature, t.Risk, t.Decision, t.Summary))
			}
			err = c.out.table([]string{"SERVER", "TOOL", "RISK", "DECISION", "SUMMARY"}, rows)
		}
		if err != nil {
			return err
		}
		text := missingTools(found.Unknown)
		if len(found.Unmatched) > 0 {
			text += "No tool has the words: " + oneLine(strings.Join(found.Unmatched, ", ")) + "\n"
		}
		if found.Note != "" {
			text += "Ranked by words alone: " + oneLine(found.Note) + ".\n"
		}
		if err := c.note.text(text); err != nil {
			return err
		}
		if len(found.Tools) == 0 {
			return fail(exitToolError, "No tool fits.")
		}
		return nil
	})
	return cmd
}
