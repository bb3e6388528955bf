package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
)

func toolsCommand() *cobra.Command {
	var search string
	var provider providerList
	cmd := &cobra.Command{
		Use:   "tools [SERVER]",
		Short: "List tools",
		Example: "  callyard tools\n" +
			"  callyard tools demo --search file\n" +
			"  callyard tools --format openai --max-tools 20 --search file\n" +
			"  callyard tools show demo add",
		Args: takes(0, 1),
	}
	cmd.RunE = withClient(suggesting(func(ctx context.Context, c *client, args []string) error {
		if err := provider.check(cmd.Flags().Changed); err != nil {
			return err
		}
		if provider.format != "" {
			provider.server, provider.query = strings.Join(args, ""), search
			return listForProvider(ctx, c, provider)
		}
		return listTools(ctx, c, strings.Join(args, ""), search)
	}))
	cmd.Flags().StringVar(&search, "search", "", "only tools with this text in their name or description; with --format, tools that match these words")
	provider.flags(cmd)
	cmd.ValidArgsFunction = completing(serverIDs)
	cmd.AddCommand(&cobra.Command{
		Use: "show SERVER TOOL", ValidArgsFunction: completing(serverIDs, toolNames),
		Short: "Show one tool with its schemas",
		Args:  takes(2, 2),
		RunE:  withClient(suggesting(showTool)),
	}, switchCommand("enable", true), switchCommand("disable", false), diffToolsCommand(), acceptToolsCommand(), convertToolsCommand(), searchToolsCommand())
	return cmd
}

// readTools returns the tools of a server, or of all servers if server is "", and the servers
// whose tools are unknown at the moment.
func readTools(ctx context.Context, c *client, server string) (*list[toolItem], error) {
	q := callyard.ListToolsParams{Server: optional(server)}
	return readList[toolItem](ctx, c, 0, func(most int, cursor string) request {
		q.Limit, q.Cursor = new(int64(most)), optional(cursor)
		return with(c.api.ListTools, &q)
	})
}

// readServerTools is [readTools] for one server, which must be ready.
func readServerTools(ctx context.Context, c *client, server string) (*list[toolItem], error) {
	tools, err := readTools(ctx, c, server)
	if err == nil && len(tools.unknown) > 0 {
		err = fail(exitUnreachable, "The tools of server %s are currently unknown: see the reason with `callyard servers show %s`.", oneLine(server), oneLine(server))
	}
	return tools, err
}

func listTools(ctx context.Context, c *client, server, search string) error {
	read := readTools
	if server != "" {
		read = readServerTools
	}
	tools, err := read(ctx, c, server)
	if err != nil {
		return err
	}
	items := slices.DeleteFunc(tools.items, func(t toolItem) bool { return !t.has(search) })
	if c.out.structured() {
		return c.out.document(encodeTools(items, tools.unknown, tools.hidden))
	}
	rows := make([][]cell, 0, len(items))
	for _, t := range items {
		row := cells(t.Server, t.Name, "on", topLine(cmp.Or(t.def.Description, t.def.Title, t.def.Annotations.Title)))
		if t.Changed != "" {
			row[2] = cell{"changed", yellow}
		}
		if !t.Enabled {
			row[2] = cell{"off", red}
			if t.Reason != "" {
				row[3].text = "(" + t.Reason + ") " + row[3].text
			}
		}
		rows = append(rows, row)
	}
	if err := c.out.table([]string{"SERVER", "TOOL", "STATE", "DESCRIPTION"}, rows); err != nil {
		return err
	}
	return c.note.text(missingTools(tools.unknown) + quarantineNote(tools.hidden))
}

// missingTools returns a note for each server whose tools are not in the list.
func missingTools(servers []string) (text string) {
	for _, id := range servers {
		text += "The tools of server " + oneLine(id) + " are currently unknown and not listed.\n"
	}
	return text
}

// encodeTools encodes a page of tools, each verbatim.
func encodeTools(items []toolItem, unknown []string, hidden []quarantinedTool) []byte {
	tools, ids := make([]string, 0, len(items)), make([]string, 0, len(unknown))
	for _, t := range items {
		tools = append(tools, string(t.raw))
	}
	for _, id := range unknown {
		ids = append(ids, string(marshal(id)))
	}
	body := `{"tools":[` + strings.Join(tools, ",") + "]"
	if len(ids) > 0 {
		body += `,"unknown":[` + strings.Join(ids, ",") + "]"
	}
	if len(hidden) > 0 {
		body += `,"quarantined":` + string(marshal(hidden))
	}
	return []byte(body + "}")
}

// has reports whether the word occurs in the tool's name or descriptions.
func (t *toolItem) has(word string) bool {
	word = strings.ToLower(word)
	for _, text := range []string{t.Name, t.def.Title, t.def.Annotations.Title, t.def.Description} {
		if strings.Contains(strings.ToLower(text), word) {
			return true
		}
	}
	return false
}

func topLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
