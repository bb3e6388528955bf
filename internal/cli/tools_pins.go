package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/shellwords"
	"github.com/callyard/callyard/internal/kit/visible"
)

func diffToolsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diff SERVER [TOOL]",
		Short: "Show tool definitions that nobody has accepted",
		Long: "diff compares the tools of a server whose entry has \"pin\" with the accepted definitions, and shows each changed or new one as a unified diff. " +
			"The command to accept it is below each diff, with the digest of the definition that was shown.",
		Example:           "  callyard tools diff files\n  callyard tools diff files read_file",
		Args:              takes(1, 2),
		ValidArgsFunction: completing(serverIDs, unacceptedTools),
		RunE:              withClient(suggesting(diffTools)),
	}
}

func acceptToolsCommand() *cobra.Command {
	var all, yes bool
	cmd := &cobra.Command{
		Use:   "accept SERVER [TOOL[@DIGEST]...]",
		Short: "Accept tool definitions",
		Long: "accept accepts the current definitions of tools, for every front door. With a digest, as printed by `callyard tools diff`, exactly that definition is accepted. " +
			"Without one, accept shows the changes and asks. If a tool has another definition by then, nothing is accepted.",
		Example: "  callyard tools accept files --all\n" +
			"  callyard tools accept files read_file@sha256:0f3a…",
		Args:              takes(1, -1),
		ValidArgsFunction: completing(serverIDs, unacceptedTools),
	}
	cmd.Flags().BoolVar(&all, "all", false, "all tools of the server that are changed or new")
	cmd.Flags().BoolVar(&yes, "yes", false, "accept without asking")
	cmd.RunE = withClient(suggesting(func(ctx context.Context, c *client, args []string) error {
		if all == (len(args) > 1) {
			return fail(exitUsage, "Name the tools to accept, or use --all: `callyard tools diff %s` lists them.", oneLine(args[0]))
		}
		return acceptTools(ctx, c, args[0], args[1:], yes)
	}))
	return cmd
}

// unaccepted reports whether the definition is changed or new.
func unaccepted(t *toolPin) bool {
	return t.State == string(callyard.ToolPinStateChanged) || t.State == string(callyard.ToolPinStateNew)
}

// serverPins and toolPin are a response of GET /servers/{id}/pins. Definitions are kept verbatim,
// because numbers that a decoder treats as equal may differ in their bytes.
type serverPins struct {
	Server string    `json:"server"`
	Tools  []toolPin `json:"tools"`
}

type toolPin struct {
	Name               string          `json:"name"`
	State              string          `json:"state"`
	Digest             string          `json:"digest"`
	Definition         json.RawMessage `json:"definition"`
	AcceptedDefinition json.RawMessage `json:"accepted_definition"`
	AcceptedBy         string          `json:"accepted_by"`
	AcceptedAt         time.Time       `json:"accepted_at"`
	raw                json.RawMessage // the whole item, verbatim
}

// UnmarshalJSON keeps the item verbatim.
func (t *toolPin) UnmarshalJSON(raw []byte) error {
	type members toolPin
	if err := json.Unmarshal(raw, (*members)(t)); err != nil {
		return err
	}
	t.raw = bytes.Clone(raw)
	return nil
}

// readPins returns the accepted definitions of a server's tools, and the response verbatim.
func readPins(ctx context.Context, c *client, server string) (pins serverPins, raw []byte, err error) {
	raw, err = c.report(ctx, with(c.api.GetServerPins, server), &pins)
	return pins, raw, err
}

// unacceptedTools returns the changed and new tools of the server in args, for completion.
func unacceptedTools(ctx context.Context, c *client, args []string) (names []string, err error) {
	if len(args) == 0 {
		return nil, nil
	}
	pins, _, err := readPins(ctx, c, args[0])
	for i := range pins.Tools {
		if unaccepted(&pins.Tools[i]) {
			names = append(names, pins.Tools[i].Name)
		}
	}
	return names, err
}

func diffTools(ctx context.Context, c *client, args []string) error {
	pins, raw, err := readPins(ctx, c, args[0])
	if err != nil {
		return err
	}
	shown := pins.Tools
	if len(args) > 1 {
		i := slices.IndexFunc(shown, func(t toolPin) bool { return t.Name == args[1] })
		if i < 0 {
			return noSuchTool(c, args[0], args[1])
		}
		shown = shown[i : i+1]
	}
	if c.out.structured() {
		if len(args) > 1 {
			return c.out.document(shown[0].raw)
		}
		return c.out.document(raw)
	}
	count := 0
	for i := range shown {
		t := &shown[i]
		if !unaccepted(t) {
			continue
		}
		count++
		if err := writeToolDiff(c.out, pins.Server, t); err != nil {
			return err
		}
		if err := c.out.text("\n" + oneLine("Accept it: callyard tools accept "+shellwords.Arguments(pins.Server, t.Name+"@"+t.Digest)) + "\n\n"); err != nil {
			return err
		}
	}
	if count == 0 {
		return c.out.text(oneLine("All definitions of server "+pins.Server+" are accepted.") + "\n")
	}
	return nil
}

func noSuchTool(c *client, server, tool string) error {
	return c.missing("Server %s has no tool %s: `callyard tools diff %s` lists changed and new tools.", oneLine(server), oneLine(tool), oneLine(server))
}

// writeToolDiff writes the difference between the accepted and the current definition.
func writeToolDiff(out screen, server string, t *toolPin) error {
	old, label := "", "nothing accepted"
	if t.AcceptedDefinition != nil {
		old, label = pretty(t.AcceptedDefinition)+"\n", "recorded at first use"
		if t.AcceptedBy != "" {
			label = "accepted by " + t.AcceptedBy
		}
		label += ", " + t.AcceptedAt.UTC().Format(time.DateTime) + " UTC"
	}
	name := oneLine(server + "/" + t.Name)
	text := udiff.Unified(name+" ("+oneLine(label)+")", name+" (current)", old, pretty(t.Definition)+"\n")
	if text == "" {
		return out.text(oneLine(name+": only white space changed.") + "\n")
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = visible.Terminal(strings.TrimSuffix(line, "\n"))
		switch {
		case strings.HasPrefix(line, "+"):
			line = out.paint(green, line)
		case strings.HasPrefix(line, "-"):
			line = out.paint(red, line)
		}
		b.WriteString(line + "\n")
	}
	return out.text(b.String())
}

// digestMark separates the name of a tool from the digest of its definition.
const digestMark = "@sha256:"

// acceptTools accepts the named tools of a server, or all changed and new ones.
func acceptTools(ctx context.Context, c *client, server string, named []string, yes bool) error {
	var accept []callyard.AcceptTool
	var asked []string // names without a digest
	for _, word := range named {
		if i := strings.LastIndex(word, digestMark); i > 0 {
			accept = append(accept, callyard.AcceptTool{Name: word[:i], Digest: word[i+1:]})
		} else {
			asked = append(asked, word)
		}
	}
	if len(asked) > 0 || len(named) == 0 {
		pins, _, err := readPins(ctx, c, server)
		if err != nil {
			return err
		}
		shown, err := selectPins(c, &pins, asked)
		if err != nil {
			return err
		}
		for _, t := range shown {
			if err := writeToolDiff(c.note, server, t); err != nil {
				return err
			}
			accept = append(accept, callyard.AcceptTool{Name: t.Name, Digest: t.Digest})
		}
		if len(shown) > 0 && !yes {
			if err := confirmed(ctx, c, fmt.Sprintf("Accept exactly these definitions (%d)?", len(shown)), "Nothing was accepted."); err != nil {
				return err
			}
		}
	}
	if len(accept) == 0 {
		return c.note.text(oneLine("All definitions of server "+server+" are accepted.") + "\n")
	}
	return show(ctx, c, with2(c.api.AcceptServerPins, server, callyard.AcceptRequest{Tools: accept}), func(*serverPins) error {
		var names []string
		for _, t := range accept {
			names = append(names, t.Name)
		}
		return c.out.text(oneLine("Accepted the definitions of server "+server+": "+strings.Join(names, ", ")+".") + "\n")
	})
}

// selectPins returns the changed or new tools that are named, or all of them if named is empty.
func selectPins(c *client, pins *serverPins, named []string) (shown []*toolPin, err error) {
	for _, name := range named {
		if !slices.ContainsFunc(pins.Tools, func(t toolPin) bool { return t.Name == name && t.State != string(callyard.ToolPinStateGone) }) {
			return nil, noSuchTool(c, pins.Server, name)
		}
	}
	for i := range pins.Tools {
		t := &pins.Tools[i]
		if unaccepted(t) && (len(named) == 0 || slices.Contains(named, t.Name)) {
			shown = append(shown, t)
		}
	}
	return shown, nil
}

// quarantinedTool is a tool that a list omits.
type quarantinedTool struct {
	Server string `json:"server"`
	Name   string `json:"name"`
}

// quarantineNote describes the tools that a list omits.
func quarantineNote(tools []quarantinedTool) (text string) {
	byServer := map[string]int{}
	var servers []string
	for _, t := range tools {
		if byServer[t.Server]++; byServer[t.Server] == 1 {
			servers = append(servers, t.Server)
		}
	}
	for _, id := range servers {
		text += fmt.Sprintf("%d tools of server %s are in quarantine and not listed: review them with `callyard tools diff %s`.\n", byServer[id], oneLine(id), oneLine(id))
	}
	return text
}
