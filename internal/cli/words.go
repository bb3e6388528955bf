package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// oneOf refuses a value of a flag that is none of the words before anything is sent.
func oneOf(flag, value string, words ...string) error {
	if slices.Contains(words, value) {
		return nil
	}
	known := strings.TrimPrefix(strings.Join(words, ", "), ", ") // "" stands for a flag that is not set
	return fail(exitUsage, "--%s cannot be %q: use one of %s%s", flag, oneLine(value), known, orPoint(didYouMean(value, words)))
}

// orPoint ends a sentence that has no suggestion.
func orPoint(suggestion string) string {
	if suggestion == "" {
		return "."
	}
	return suggestion
}

// helpCommand is cobra's command help, but for words that are no command: those are refused.
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

// knowCompletion has the command completion refuse shells that it does not know.
func knowCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args, cmd.RunE = takes(0, 0), func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}
