package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func toolsCommand() *cobra.Command {
	var search string
	cmd := &cobra.Command{
		Use:   "tools [SERVER]",
		Short: "List the tools that can be called",
		Example: "  callyard tools\n" +
			"  callyard tools demo --search file\n" +
			"  callyard tools show demo add",
		Args: takes(0, 1),
		RunE: withClient(func(cmd *cobra.Command, c *client, args []string) error {
			return c.listTools(cmd.Context(), strings.Join(args, ""), search)
		}),
	}
	cmd.Flags().StringVar(&search, "search", "", "only tools with this word in their name or description")
	show := &cobra.Command{
		Use:   "show SERVER TOOL",
		Short: "Show one tool with its schema",
		Args:  takes(2, 2),
		RunE: withClient(func(cmd *cobra.Command, c *client, args []string) error {
			return c.showTool(cmd.Context(), args[0], args[1])
		}),
	}
	cmd.AddCommand(show, switchCommand("enable", true), switchCommand("disable", false))
	return cmd
}

// pageSize is the most that a front door puts on one page.
const pageSize = "500"

// tools returns the tools of a server, or of all when it is "", and the servers
// whose tools are not known at the moment.
func (c *client) tools(ctx context.Context, server string) (items []toolItem, unknown []string, err error) {
	q := url.Values{"limit": {pageSize}}
	if server != "" {
		q.Set("server", server)
	}
	for {
		var page toolPage
		if _, err := c.get(ctx, "/tools?"+q.Encode(), &page); err != nil {
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
		if page.Next == "" || page.Next == q.Get("cursor") {
			return items, unknown, nil
		}
		q.Set("cursor", page.Next)
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

func (c *client) showTool(ctx context.Context, server, name string) error {
	items, err := c.serverTools(ctx, server)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(items, func(t toolItem) bool { return t.Name == name })
	if i < 0 {
		return fail(exitRefused, "Server %s has no tool %s: `callyard tools %s` lists its tools.", oneLine(server), oneLine(name), oneLine(server))
	}
	t := &items[i]
	if c.json {
		return c.out.raw(t.raw)
	}
	rows := [][]cell{cells("tool", t.Name), cells("server", t.Server), {{text: "state"}, {"on", green}}}
	if !t.Enabled {
		rows[2][1] = cell{"off " + t.Reason, red}
	}
	if title := firstOf(t.def.Title, t.def.Annotations.Title); title != "" {
		rows = append(rows, cells("title", title))
	}
	if hints := t.def.hints(); hints != "" {
		rows = append(rows, cells("hints", hints))
	}
	out := c.out
	out.width = 0 // nothing of a single tool is cut
	if err := out.columns(rows); err != nil {
		return err
	}
	for _, part := range []struct{ head, text string }{
		{"description", strings.TrimSpace(t.def.Description)}, {"input schema", pretty(t.def.Input)}, {"output schema", pretty(t.def.Output)},
	} {
		if part.text == "" {
			continue
		}
		if err := out.text("\n" + out.paint(bold, part.head) + "\n" + visible(part.text) + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// hints lists what the server says of the tool's effects.
func (d *toolDefinition) hints() string {
	var words []string
	for _, h := range []struct {
		value   *bool
		yes, no string
	}{
		{d.Annotations.ReadOnly, "read-only", "changes things"},
		{d.Annotations.Destructive, "destructive", "not destructive"},
		{d.Annotations.Idempotent, "idempotent", "not idempotent"},
		{d.Annotations.OpenWorld, "open world", "closed world"},
	} {
		switch {
		case h.value == nil:
		case *h.value:
			words = append(words, h.yes)
		default:
			words = append(words, h.no)
		}
	}
	return strings.Join(words, ", ")
}

func switchCommand(verb string, enabled bool) *cobra.Command {
	var reason string
	short := "Let a tool be called again"
	if !enabled {
		short = "Switch a tool off; its callers are refused with the reason"
	}
	cmd := &cobra.Command{
		Use:   verb + " SERVER TOOL",
		Short: short,
		Args:  takes(2, 2),
		RunE: withClient(func(cmd *cobra.Command, c *client, args []string) error {
			return c.switchTool(cmd.Context(), args[0], args[1], enabled, reason)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; callers are shown it")
	return cmd
}

func (c *client) switchTool(ctx context.Context, server, tool string, enabled bool, reason string) error {
	body := []byte(`{"enabled":false`)
	if enabled {
		body = []byte(`{"enabled":true`)
	}
	if reason != "" {
		body = append(append(body, `,"reason":`...), quote(reason)...)
	}
	var t toolItem
	raw, err := c.report(ctx, request{
		method: http.MethodPatch, path: "/servers/" + segment(server) + "/tools/" + segment(tool), body: append(body, '}'),
	}, &t)
	if err != nil {
		return err
	}
	if c.json {
		return c.out.raw(raw)
	}
	text := "The tool " + t.Name + " of server " + t.Server + " is on."
	if !t.Enabled {
		text = "The tool " + t.Name + " of server " + t.Server + " is off."
	}
	return c.out.text(oneLine(text) + "\n")
}
