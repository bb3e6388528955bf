package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestHelpFitsTheTerminal(t *testing.T) {
	plainEnvironment(t)
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		var out strings.Builder
		cmd.SetOut(&out)
		cmd.InitDefaultHelpFlag()
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		for _, width := range []int{40, 80, 120} {
			got := wrapHelp(out.String(), width)
			if !slices.Equal(strings.Fields(got), strings.Fields(out.String())) {
				t.Errorf("%s: the words of the help changed:\n%s", cmd.CommandPath(), got)
			}
			example := false
			for line := range strings.Lines(got) {
				example = line == "Examples:\n" || example && line != "\n"
				text := strings.TrimSuffix(line, "\n")
				if !example && columnsOf(text) > width && strings.Contains(strings.TrimSpace(text), " ") {
					t.Errorf("%s: at %d columns the help has the line %q", cmd.CommandPath(), width, line)
				}
			}
		}
	}
	visit(rootCommand())
}

func TestHelpContinuesBelowTheDescription(t *testing.T) {
	text := "Examples:\n  callyard batch calls.ndjson --out results.ndjson\n\nFlags:\n  --all    cancel the batch now and then\n  demo-server Run a server\n"
	want := "Examples:\n  callyard batch calls.ndjson --out results.ndjson\n\nFlags:\n  --all    cancel the batch\n           now and then\n  demo-server Run a server\n"
	if got := wrapHelp(text, 30); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := wrapHelp(text, 0); got != text {
		t.Errorf("without a terminal: %q", got)
	}
}
