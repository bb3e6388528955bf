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
		b.WriteString(breakWords(line, strings.Split(strings.TrimSpace(line), " "), indent, width) + "\n") // an empty word is a space of an aligned column
	}
	return b.String()
}

// breakWords breaks a line with these words between words. The lines after the first have the indent.
func breakWords(line string, words []string, indent, width int) string {
	column := len(line) - len(strings.TrimLeft(line, " "))
	var b strings.Builder
	b.WriteString(line[:column])
	gap := ""
	for _, word := range words {
		if column+len(gap)+columnsOf(word) > width && gap != "" {
			gap, column = "\n"+strings.Repeat(" ", indent), indent
		} else {
			column += len(gap)
		}
		b.WriteString(gap + word)
		column += columnsOf(word)
		gap = " "
	}
	return b.String()
}

// sentences breaks the long lines of a text between words, so that the terminal does not break them
// within words. The lines after the first of each are indented by that many more columns. Commands in
// backticks are not broken, so that they can be copied.
func (s screen) sentences(text string, indent int) string {
	if s.width <= 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if columnsOf(line) <= s.width {
			continue
		}
		var words []string
		code := false
		for word := range strings.SplitSeq(strings.TrimSpace(line), " ") {
			if code {
				words[len(words)-1] += " " + word
			} else {
				words = append(words, word)
			}
			code = code != (strings.Count(word, "`")%2 == 1)
		}
		lines[i] = breakWords(line, words, len(line)-len(strings.TrimLeft(line, " "))+indent, s.width)
	}
	return strings.Join(lines, "\n")
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
