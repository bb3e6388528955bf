package cli

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"

	"github.com/callyard/callyard/internal/kit/bom"
)

// preflight holds the members of the response of GET /preflight that are used here.
type preflight struct {
	Ready bool            `json:"ready"`
	Tools []preflightTool `json:"tools"`
}

type preflightTool struct {
	Server   string `json:"server"`
	Tool     string `json:"tool"`
	Ready    bool   `json:"ready"`
	State    string `json:"state"`
	Reason   string `json:"reason,omitempty"`
	Pinned   bool   `json:"pinned"`
	Digest   string `json:"digest,omitempty"`
	Risk     string `json:"risk,omitempty"`
	Decision string `json:"decision,omitempty"`
}

const (
	// preflightPage limits the number of tools per request, because they are part of the URL.
	preflightPage = 50
	// maxRequired limits the size of a file of required tools, in bytes.
	maxRequired = 1 << 20
)

// checkCommand reports whether the tools that a program needs are ready.
func checkCommand() *cobra.Command {
	var file string
	var pinned bool
	cmd := &cobra.Command{
		Use:   "check --require FILE",
		Short: "Check that the tools a program needs are ready",
		Long: "check reports whether each tool of a file exists, is enabled, accepted and online, and is not denied to you by the policy. No call is made. " +
			"The file has one SERVER/TOOL a line, or SERVER/TOOL@DIGEST to require exactly that definition; empty lines and text after # are skipped; - reads standard input.\n\n" +
			"Exit code: 0 all tools are ready, 1 at least one is not.",
		Example: "  callyard check --require tools.txt\n  callyard check --require tools.txt --pinned --json",
		Args:    takes(0, 0),
	}
	cmd.Flags().StringVar(&file, "require", "", "file with the tools, one a line")
	cmd.Flags().BoolVar(&pinned, "pinned", false, "also require that the servers are pinned and the definitions accepted")
	cmd.RunE = withClient(func(ctx context.Context, c *client, _ []string) error {
		names, err := untilInterrupt(ctx, func() ([]string, error) { return requiredTools(file, c.in) })
		if err != nil {
			return err
		}
		all := preflight{Ready: true}
		for len(names) > 0 {
			n := min(len(names), preflightPage)
			var page preflight
			q := callyard.PreflightParams{Tool: names[:n]}
			if _, err := c.report(ctx, with(c.api.Preflight, &q), &page); err != nil {
				return err
			}
			all.Tools = append(all.Tools, page.Tools...)
			names = names[n:]
		}
		for i := range all.Tools {
			t := &all.Tools[i]
			if pinned && t.Ready && !t.Pinned {
				t.Ready, t.State, t.Reason = false, "unpinned", "Its server is not pinned: set \"pin\" in its entry."
			}
			all.Ready = all.Ready && t.Ready
		}
		return showPreflight(c, &all)
	})
	return cmd
}

func showPreflight(c *client, all *preflight) error {
	notReady := 0
	rows := make([][]cell, 0, len(all.Tools))
	for _, t := range all.Tools {
		row := cells(t.Server, t.Tool, t.State, t.Risk, t.Decision, t.Reason)
		if !t.Ready {
			notReady++
			row[2].paint = red
		}
		rows = append(rows, row)
	}
	var err error
	if c.out.structured() {
		err = c.out.document(marshal(all))
	} else {
		err = c.out.table([]string{"SERVER", "TOOL", "STATE", "RISK", "DECISION", "REASON"}, rows)
	}
	if err == nil && notReady > 0 {
		err = fail(exitToolError, "%d of %d tools are not ready.", notReady, len(all.Tools))
	}
	return err
}

// requiredTools reads the tool names from a file.
func requiredTools(file string, stdin io.Reader) (names []string, err error) {
	if file == "" {
		return nil, fail(exitUsage, "Name the file with the tools: --require FILE.")
	}
	text, err := readInput(file, stdin, maxRequired)
	switch {
	case err != nil:
		return nil, fail(exitUsage, "%s cannot be read: %v", oneLine(file), err)
	case len(text) > maxRequired:
		return nil, fail(exitUsage, "%s has more than %d bytes.", oneLine(file), maxRequired)
	}
	n := 0
	for line := range strings.Lines(string(bom.Trim(text))) {
		n++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if server, tool, found := strings.Cut(line, "/"); !found || server == "" || tool == "" {
			return nil, fail(exitUsage, "Line %d of %s is not SERVER/TOOL: %s", n, oneLine(file), oneLine(line))
		}
		names = append(names, line)
	}
	if len(names) == 0 {
		return nil, fail(exitUsage, "%s names no tools.", oneLine(file))
	}
	return names, nil
}
