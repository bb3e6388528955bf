package cli

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
)

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
	cmd.ValidArgsFunction = completing(serverIDs, toolNames)
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
	body = append(body, '}')
	raw, err := c.report(ctx, func(ctx context.Context, edit ...callyard.RequestEditorFn) (*http.Response, error) {
		return c.api.SwitchToolWithBody(ctx, server, tool, mediaJSON, bytes.NewReader(body), edit...)
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
