package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// fitHelp makes the help of all commands fit the terminal. Cobra writes lines of any length,
// which a terminal breaks within words.
func fitHelp(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		out := cmd.OutOrStdout()
		var text strings.Builder
		cmd.SetOut(&text)
		help(cmd, args)
		cmd.SetOut(out)
		s := screenOf(out)
		_ = s.text(wrapHelp(text.String(), s.width)) // as in cobra, whose help has no error either
	})
}

// wrapHelp breaks the lines of a help text between words. The lines after the first one of a flag or
// a command are below its description. Examples stay as they are, so that they can be copied. A
// width of 0 means no limit.
func wrapHelp(text string, width int) string {
	if width <= 0 {
		return text
	}
	var b strings.Builder
	example := false
	for line := range strings.Lines(text) {
		example = line == "Examples:\n" || example && line != "\n"
		if example || columnsOf(strings.TrimSuffix(line, "\n")) <= width {
			b.WriteString(line)
			continue
		}
		indent := hangingIndent(line)
		if indent > width/2 {
			indent = 0
		}
		column := len(line) - len(strings.TrimLeft(line, " "))
		b.WriteString(line[:column])
		gap := ""
		for word := range strings.SplitSeq(strings.TrimSpace(line), " ") { // an empty word is a space of an aligned column
			if column+len(gap)+columnsOf(word) > width && gap != "" {
				gap, column = "\n"+strings.Repeat(" ", indent), indent
			} else {
				column += len(gap)
			}
			b.WriteString(gap + word)
			column += columnsOf(word)
			gap = " "
		}
		b.WriteString("\n")
	}
	return b.String()
}

// hangingIndent returns the column of the description in the line of a flag or a command, which follows
// its name and at least two spaces, or else the indent of the line.
func hangingIndent(line string) int {
	indent := len(line) - len(strings.TrimLeft(line, " "))
	if indent == 0 {
		return 0
	}
	name, _, found := strings.Cut(line[indent:], "  ")
	if !found {
		return indent
	}
	rest := line[indent+len(name):]
	return indent + columnsOf(name) + len(rest) - len(strings.TrimLeft(rest, " "))
}
