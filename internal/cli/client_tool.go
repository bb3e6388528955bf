package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/visible"
)

// toolItem is a tool as the commands read it. Unknown members, which a newer front door may add,
// are ignored.
type toolItem struct {
	Server     string          `json:"server"`
	Name       string          `json:"name"`
	Enabled    bool            `json:"enabled"`
	Reason     string          `json:"reason"`
	Changed    string          `json:"changed"`
	Definition json.RawMessage `json:"definition"`
	raw        json.RawMessage // the whole item, verbatim
	def        toolDefinition
}

// UnmarshalJSON keeps the item verbatim. A malformed definition is shown as far as it can be
// decoded.
func (t *toolItem) UnmarshalJSON(raw []byte) error {
	type members toolItem
	if err := json.Unmarshal(raw, (*members)(t)); err != nil {
		return err
	}
	t.raw = bytes.Clone(raw)
	_ = json.Unmarshal(t.Definition, &t.def)
	return nil
}

// toolDefinition holds the members of an MCP tool that the commands show.
type toolDefinition struct {
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"inputSchema"`
	Output      json.RawMessage `json:"outputSchema"`
	Annotations struct {
		Title       string `json:"title"`
		ReadOnly    *bool  `json:"readOnlyHint"`
		Destructive *bool  `json:"destructiveHint"`
		Idempotent  *bool  `json:"idempotentHint"`
		OpenWorld   *bool  `json:"openWorldHint"`
	} `json:"annotations"`
}

func showTool(ctx context.Context, c *client, args []string) error {
	server, name := args[0], args[1]
	tools, err := readServerTools(ctx, c, server)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(tools.items, func(t toolItem) bool { return t.Name == name })
	if i < 0 {
		return c.missing("Server %s has no tool %s: `callyard tools %s` lists its tools.", oneLine(server), oneLine(name), oneLine(server))
	}
	t, out := &tools.items[i], c.out
	if out.structured() {
		return out.document(t.raw)
	}
	state := cell{"on", green}
	if !t.Enabled {
		state = cell{"off " + t.Reason, red}
	}
	rows := [][]cell{
		cells("tool", t.Name), cells("server", t.Server), {{text: "state"}, state}, cells("definition", t.Changed), cells("title", cmp.Or(t.def.Title, t.def.Annotations.Title)), cells("hints", t.def.hints()),
	}
	if err := out.sheet(rows...); err != nil {
		return err
	}
	for _, part := range []struct{ head, text string }{
		{"description", strings.TrimSpace(t.def.Description)}, {"input schema", pretty(t.def.Input)}, {"output schema", pretty(t.def.Output)},
	} {
		if part.text == "" {
			continue
		}
		if err := out.section(part.head, visible.Terminal(part.text)); err != nil {
			return err
		}
	}
	return nil
}

// hints lists the tool's annotations about its effects, as the server declares them.
func (d *toolDefinition) hints() string {
	var words []string
	for _, h := range []struct {
		value   *bool
		yes, no string
	}{
		{d.Annotations.ReadOnly, "read-only", "changes data"},
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
	var many wideSwitch
	short := "Enable a tool, or tools that were disabled by pattern or set"
	if !enabled {
		short = "Disable a tool, or tools by pattern or set; calls are refused with the reason"
	}
	cmd := &cobra.Command{
		Use:     verb + " (SERVER TOOL | --match SERVER/TOOL | --set NAME)",
		Short:   short,
		Example: "  callyard tools " + verb + " files delete\n  callyard tools " + verb + " --match 'files/*'\n  callyard tools " + verb + " --match '*/delete_*' --set research",
		Args:    takes(0, 2),
		RunE: withClient(suggesting(func(ctx context.Context, c *client, args []string) error {
			if many.match != "" || many.set != "" {
				return many.change(ctx, c, args, enabled, reason)
			}
			if len(args) != 2 {
				return fail(exitUsage, "Pass SERVER and TOOL, or --match 'SERVER/TOOL', or --set NAME.")
			}
			return switchTool(ctx, c, args[0], args[1], enabled, reason)
		})),
		ValidArgsFunction: completing(serverIDs, toolNames),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "reason, shown to callers")
	cmd.Flags().StringVar(&many.match, "match", "", "tools by pattern, as SERVER/TOOL with * and ?, also those that come later")
	cmd.Flags().StringVar(&many.set, "set", "", "only tools of this set")
	return cmd
}

// wideSwitch selects the tools to enable or disable together.
type wideSwitch struct{ match, set string }

func (w *wideSwitch) change(ctx context.Context, c *client, args []string, enabled bool, reason string) error {
	server, tool, ok := strings.Cut(w.match, "/")
	if len(args) > 0 || w.match != "" && !ok {
		return fail(exitUsage, "Pass either SERVER and TOOL, or --match 'SERVER/TOOL' and --set NAME; '%s/*' is every tool of a server.", oneLine(cmp.Or(server, "SERVER")))
	}
	body := callyard.WideSwitchRequest{Server: optional(server), Tool: optional(tool), Set: optional(w.set), Enabled: enabled, Reason: optional(reason)}
	return show(ctx, c, with(c.api.SwitchTools, body), func(done *struct {
		Tools int `json:"tools"`
	}) error {
		verb := "disabled"
		if enabled {
			verb = "enabled, unless something else disables them"
		}
		return c.out.text(fmt.Sprintf("The %d tools that match now are %s.\n", done.Tools, verb))
	})
}

func switchTool(ctx context.Context, c *client, server, tool string, enabled bool, reason string) error {
	body := marshal(callyard.SwitchRequest{Enabled: enabled, Reason: optional(reason)})
	return show(ctx, c, func(ctx context.Context, edit ...callyard.RequestEditorFn) (*http.Response, error) {
		return c.api.SwitchToolWithBody(ctx, server, tool, mediaJSON, bytes.NewReader(body), edit...)
	}, func(t *toolItem) error {
		state := "off"
		if t.Enabled {
			state = "on"
		}
		return c.out.text(oneLine("The tool "+t.Name+" of server "+t.Server+" is "+state+".") + "\n")
	})
}
