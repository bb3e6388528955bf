package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/callyard/callyard/internal/kit/goldentest"
)

const commandsPage = "../../docs/reference/cli.md"

// The list of commands is generated from the command line itself.
func TestThePageOfTheCommandLineListsEveryCommandAndFlag(t *testing.T) {
	raw, err := os.ReadFile(commandsPage)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- commands -->\n", "<!-- end of commands -->\n"
	before, rest, found := strings.Cut(string(raw), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no lines %q and %q", commandsPage, begin, end)
	}
	var b strings.Builder
	writeCommand(&b, rootCommand())
	want := before + begin + b.String() + end + after
	if *goldentest.Update {
		if err := os.WriteFile(commandsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(raw), want); diff != "" {
		t.Errorf("the list of commands is not that of the code: go test ./internal/cli -run PageOfTheCommandLine -update (-page +code):\n%s", diff)
	}
}

func writeCommand(b *strings.Builder, c *cobra.Command) {
	if c.Hidden {
		return
	}
	if c.Annotations[sameAsGroup] != "" {
		fmt.Fprintf(b, "\n### `%s`\n\n%s, with the same flags. `ls` is another word for `list`.\n\n```text\n%s\n```\n", c.CommandPath(), c.Short, c.UseLine())
		return
	}
	if c.HasParent() && c.Runnable() {
		fmt.Fprintf(b, "\n### `%s`\n\n%s.\n\n```text\n%s\n```\n", c.CommandPath(), strings.TrimSuffix(c.Short, "."), c.UseLine())
		var rows strings.Builder
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" || c.Root().PersistentFlags().Lookup(f.Name) == f {
				return
			}
			name := "`--" + f.Name + "`"
			if f.Shorthand != "" {
				name = "`-" + f.Shorthand + "`, " + name
			}
			kind, usage := pflag.UnquoteUsage(f)
			if kind != "" {
				kind = " `" + kind + "`"
			}
			value := f.DefValue
			if value == "" || value == "[]" || value == "false" || value == "0" || value == "0s" {
				value = ""
			} else {
				value = "`" + value + "`"
			}
			fmt.Fprintf(&rows, "| %s%s | %s | %s |\n", name, kind, value, strings.ReplaceAll(usage, "|", `\|`))
		})
		if rows.Len() > 0 {
			b.WriteString("\n| flag | default | meaning |\n|---|---|---|\n" + rows.String())
		}
	}
	for _, sub := range c.Commands() {
		writeCommand(b, sub)
	}
}
