package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// oneOf rejects a flag value that is not one of the words, before a request is sent.
func oneOf(flag, value string, words ...string) error {
	if slices.Contains(words, value) {
		return nil
	}
	known := strings.TrimPrefix(strings.Join(words, ", "), ", ") // words may contain "" for a flag that is not set
	return fail(exitUsage, "--%s cannot be %q: use one of %s%s", flag, oneLine(value), known, orPoint(didYouMean(value, words)))
}

// commaList returns the words of a flag whose value separates them by commas.
func commaList(text string) (words []string) {
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// orPoint returns the suggestion, or "." to end the sentence if there is none.
func orPoint(suggestion string) string {
	if suggestion == "" {
		return "."
	}
	return suggestion
}

// helpCommand is cobra's help command, except that it rejects unknown commands.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		Long:  "help prints the help of a command, as its flag --help does.",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return unknownCommand(found, rest[0])
			}
			found.InitDefaultHelpFlag()
			found.InitDefaultVersionFlag()
			return found.Help()
		},
	}
}

// knowCompletion makes the command completion reject unknown shells.
func knowCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args, cmd.RunE = takes(0, 0), func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}
