package cli

import (
	"context"
	"encoding/json"
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
		Short: "List the tools that can be called",
		Example: "  callyard tools\n" +
			"  callyard tools demo --search file\n" +
			"  callyard tools --format openai --max-tools 20 --search file\n" +
			"  callyard tools show demo add",
		Args: takes(0, 1),
		RunE: withClient(func(cmd *cobra.Command, c *client, args []string) error {
			if provider.format != "" {
				provider.server, provider.query = strings.Join(args, ""), search
				return c.listForProvider(cmd.Context(), provider)
			}
			return c.listTools(cmd.Context(), strings.Join(args, ""), search)
		}),
	}
	cmd.Flags().StringVar(&search, "search", "", "only tools with this word in their name or description; with --format, that have to do with these words")
	provider.flags(cmd)
	show := &cobra.Command{
		Use:   "show SERVER TOOL",
		Short: "Show one tool with its schema",
		Args:  takes(2, 2),
		RunE: withClient(func(cmd *cobra.Command, c *client, args []string) error {
			return c.showTool(cmd.Context(), args[0], args[1])
		}),
	}
	cmd.ValidArgsFunction, show.ValidArgsFunction = completing(serverIDs), completing(serverIDs, toolNames)
	cmd.AddCommand(show, switchCommand("enable", true), switchCommand("disable", false))
	return cmd
}

// pageSize is the most that a front door puts on one page.
const pageSize = 500

// tools returns the tools of a server, or of all when it is "", and the servers
// whose tools are not known at the moment.
func (c *client) tools(ctx context.Context, server string) (items []toolItem, unknown []string, err error) {
	most := int64(pageSize)
	q := callyard.ListToolsParams{Limit: &most, Server: given(server)}
	for {
		var page toolPage
		if _, err := c.report(ctx, with(c.api.ListTools, &q), &page); err != nil {
			return nil, nil, err
		}
		for _, raw := range page.Tools {
			t := toolItem{raw: raw}
			if err := json.Unmarshal(raw, &t); err != nil {
				return nil, nil, c.foreign()
			}
			// A definition that is odd is shown as far as it can be read.
			_ = json.Unmarshal(t.Definition, &t.def)
			items = append(items, t)
		}
		for _, id := range page.Unknown {
			if !slices.Contains(unknown, id) {
				unknown = append(unknown, id)
			}
		}
		if page.Next == "" || q.Cursor != nil && page.Next == *q.Cursor {
			return items, unknown, nil
		}
		q.Cursor = &page.Next
	}
}

// serverTools is tools of one server, which has to be ready.
func (c *client) serverTools(ctx context.Context, server string) ([]toolItem, error) {
	items, unknown, err := c.tools(ctx, server)
	if err == nil && len(unknown) > 0 {
		err = fail(exitUnreachable, "The tools of server %s are not known at the moment: `callyard servers show %s` says why.", oneLine(server), oneLine(server))
	}
	return items, err
}

func (c *client) listTools(ctx context.Context, server, search string) error {
	var items []toolItem
	var unknown []string
	var err error
	if server == "" {
		items, unknown, err = c.tools(ctx, "")
	} else {
		items, err = c.serverTools(ctx, server)
	}
	if err != nil {
		return err
	}
	items = slices.DeleteFunc(items, func(t toolItem) bool { return !t.has(search) })
	if c.json {
		page := toolPage{Tools: make([]json.RawMessage, 0, len(items)), Unknown: unknown}
		for _, t := range items {
			page.Tools = append(page.Tools, t.raw)
		}
		return c.out.raw(page.encode())
	}
	rows := make([][]cell, 0, len(items))
	for _, t := range items {
		row := cells(t.Server, t.Name, "on", topLine(firstOf(t.def.Description, t.def.Title, t.def.Annotations.Title)))
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
	for _, id := range unknown {
		if err := c.note.text("The tools of server " + oneLine(id) + " are not known at the moment and are missing here.\n"); err != nil {
			return err
		}
	}
	return nil
}

// encode is the page with every tool as the bytes that came.
func (p *toolPage) encode() []byte {
	body := []byte(`{"tools":[`)
	for i, raw := range p.Tools {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, raw...)
	}
	body = append(body, ']')
	for i, id := range p.Unknown {
		if i == 0 {
			body = append(body, `,"unknown":[`...)
		} else {
			body = append(body, ',')
		}
		body = append(body, quote(id)...)
	}
	if len(p.Unknown) > 0 {
		body = append(body, ']')
	}
	return append(body, '}')
}

// has says that the word occurs in what the tool says of itself.
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
