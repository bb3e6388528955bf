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

func TestSentencesAreBrokenBetweenWords(t *testing.T) {
	const text = "callyard: The server \"files\" is not there. Run `callyard servers list` to see all servers.\n  the fault of a parameter with a long text\nhttp://127.0.0.1:8080/an/address/of/more/columns/than/there/are"
	for width, want := range map[int]string{
		0: text, 200: text,
		40: "callyard: The server \"files\" is not\n  there. Run `callyard servers list` to\n  see all servers.\n  the fault of a parameter with a long\n    text\nhttp://127.0.0.1:8080/an/address/of/more/columns/than/there/are",
		30: "callyard: The server \"files\"\n  is not there. Run\n  `callyard servers list` to\n  see all servers.\n  the fault of a parameter\n    with a long text\nhttp://127.0.0.1:8080/an/address/of/more/columns/than/there/are",
	} {
		if got := (screen{width: width}).sentences(text, 2); got != want {
			t.Errorf("%d columns:\n%s", width, got)
		}
	}
}
