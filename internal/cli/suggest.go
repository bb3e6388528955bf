package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/callyard/callyard/internal/kit/shellwords"
	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

// suggestFor limits the time to fetch the known names, because printing the error waits for them.
// Tests raise it.
var suggestFor = 2 * time.Second

// didYouMean returns a sentence that suggests the name nearest to a mistyped one, preceded by the
// period of the previous sentence. If no name is near, it returns "".
func didYouMean(typed string, names []string) string {
	near := yamldoc.Nearest(typed, names)
	if near == "" && len(typed) >= 3 {
		for _, name := range names {
			if !strings.HasPrefix(name, typed) {
				continue
			}
			if near != "" {
				return "" // it may be the prefix of several names
			}
			near = name
		}
	}
	if near == "" || near == typed {
		return ""
	}
	return ". Did you mean " + oneLine(near) + "?"
}

// flagFault returns the error for a wrong flag, with a suggestion.
func flagFault(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var number *strconv.NumError
	if errors.As(err, &invalid) && errors.As(err, &number) { // replace strconv's message, which is written for programmers
		kind := "a whole number"
		if strings.HasPrefix(invalid.GetFlag().Value.Type(), "float") {
			kind = "a number"
		}
		if number.Func == "ParseBool" {
			kind = "true or false"
		}
		if errors.Is(number.Err, strconv.ErrRange) {
			kind += " that is not so large"
		}
		return fail(exitUsage, "--%s must be %s, not %q.", invalid.GetFlag().Name, kind, oneLine(invalid.GetValue()))
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return &exitError{code: exitUsage, err: err}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	typed := "--" + unknown.GetSpecifiedName()
	return fail(exitUsage, "%s has no flag %s%s", cmd.CommandPath(), oneLine(typed), orPoint(didYouMean(typed, names)))
}

// unknownCommand returns the error for a word that is not a subcommand of cmd.
func unknownCommand(cmd *cobra.Command, word string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(append(names, c.Name()), c.Aliases...)
		}
	}
	hint := didYouMean(word, names)
	if hint == "" && slices.Contains(names, "show") { // people type the name of what they want to see
		hint = fmt.Sprintf(". To see one object, use `%s show %s`.", cmd.CommandPath(), oneLine(shellwords.Quote(word)))
	}
	return fail(exitUsage, "%s has no command %q%s", cmd.CommandPath(), oneLine(word), orPoint(hint))
}

// suggesting adds suggestions to the error for a server or tool that does not exist. The first
// argument of the command is a server, the second one of its tools.
func suggesting(run asking) asking {
	return func(ctx context.Context, c *client, args []string) error {
		err := run(ctx, c, args)
		if len(args) == 0 || !isNotFound(err) {
			return err
		}
		hint := suggestName(ctx, c, args)
		if hint == "" {
			return err
		}
		return fail(exitCode(err), "%w\n%s", err, strings.TrimPrefix(hint, ". "))
	}
}

// suggestName suggests a server, or a tool if the server exists. It returns "" if there is no
// suggestion or the front door does not respond.
func suggestName(ctx context.Context, c *client, args []string) string {
	ctx, cancel := context.WithTimeout(ctx, suggestFor)
	defer cancel()
	c = c.quiet()
	known, err := serverIDs(ctx, c, nil)
	if err != nil {
		return ""
	}
	names := withoutDescriptions(known)
	if !slices.Contains(names, args[0]) {
		return didYouMean(args[0], names)
	}
	if len(args) < 2 {
		return ""
	}
	known, err = toolNames(ctx, c, args[:1])
	if err != nil {
		return ""
	}
	return didYouMean(args[1], withoutDescriptions(known))
}

// withoutDescriptions removes the descriptions from completion words.
func withoutDescriptions(words []string) []string {
	names := make([]string, len(words))
	for i, word := range words {
		names[i], _, _ = strings.Cut(word, "\t")
	}
	return names
}
