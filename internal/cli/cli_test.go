package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// empty matches a help text that prints an empty default.
var empty = regexp.MustCompile(`\(default (""|\[\]|0s|0|false|)\)|\(default[^)]*\)[^\n]*\(default`)

func TestTheHelpOfEveryCommandIsWhole(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if found := empty.FindString(cmd.UsageString()); found != "" {
			t.Errorf("the help of %q has %q", cmd.CommandPath(), found)
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%q has no short text, or one that ends like a sentence: %q", cmd.CommandPath(), cmd.Short)
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(rootCommand())
}
