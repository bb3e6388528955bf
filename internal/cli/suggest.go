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

	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

// suggestFor bounds the question for the names that there are: the error is known already,
// and waits for it.
const suggestFor = 2 * time.Second

// didYouMean is a sentence that suggests the name nearest to a mistyped one, with the end
// of the sentence before it; "" where none is near.
func didYouMean(typed string, names []string) string {
	near := yamldoc.Nearest(typed, names)
	if near == "" && len(typed) >= 3 {
		for _, name := range names {
			if !strings.HasPrefix(name, typed) {
				continue
			}
			if near != "" {
				return "" // it may be the beginning of several
			}
			near = name
		}
	}
	if near == "" || near == typed {
		return ""
	}
	return ". Did you mean " + oneLine(near) + "?"
}

// flagFault is the error for a wrong flag, with the flag that may be meant.
func flagFault(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var number *strconv.NumError
	if errors.As(err, &invalid) && errors.As(err, &number) { // its own words are those of a programmer
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

// unknownCommand is the error for a word that is no command below cmd.
func unknownCommand(cmd *cobra.Command, word string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(append(names, c.Name()), c.Aliases...)
		}
	}
	return fail(exitUsage, "%s has no command %q%s", cmd.CommandPath(), oneLine(word), orPoint(didYouMean(word, names)))
}

// suggesting adds to the error for a server or tool that does not exist the names that may
// be meant. The first argument of the command is a server, the second one a tool of it.
func suggesting(run asking) asking {
	return func(ctx context.Context, c *client, args []string) error {
		err := run(ctx, c, args)
		var missing *exitError
		if len(args) == 0 || !errors.As(err, &missing) || !missing.notFound {
			return err
		}
		hint := suggestName(ctx, c, args)
		if hint == "" {
			return err
		}
		return &exitError{code: missing.code, err: fmt.Errorf("%w\n%s", err, strings.TrimPrefix(hint, ". "))}
	}
}

// suggestName suggests a server, or a tool where the server exists; "" when there is none
// to suggest or the front door does not tell.
func suggestName(ctx context.Context, c *client, args []string) string {
	ctx, cancel := context.WithTimeout(ctx, suggestFor)
	defer cancel()
	quiet := *c
	quiet.out.format = formatTable // a refusal of these questions is not printed
	known, err := serverIDs(ctx, &quiet, nil)
	if err != nil {
		return ""
	}
	names := bare(known)
	if !slices.Contains(names, args[0]) {
		return didYouMean(args[0], names)
	}
	if len(args) < 2 {
		return ""
	}
	known, err = toolNames(ctx, &quiet, args[:1])
	if err != nil {
		return ""
	}
	return didYouMean(args[1], bare(known))
}

// bare takes the descriptions of words away.
func bare(words []string) []string {
	names := make([]string, len(words))
	for i, word := range words {
		names[i], _, _ = strings.Cut(word, "\t")
	}
	return names
}
