// Package shellwords quotes words for commands that people copy into a POSIX shell.
package shellwords

import "strings"

// plain are the characters that need no quotes.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+,"

// Quote returns the text as one word of a shell, in quotes if it needs them. The word may begin with a
// dash; see [Arguments].
func Quote(text string) string {
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Arguments quotes the arguments of a command, separated by spaces. If one begins with a dash, "--" precedes
// them: a server chooses the names of its tools, and the command must not take one for a flag such as
// --url, with which it would send the key elsewhere.
func Arguments(words ...string) string {
	quoted, mark := make([]string, len(words)), ""
	for i, w := range words {
		if strings.HasPrefix(w, "-") {
			mark = "-- "
		}
		quoted[i] = Quote(w)
	}
	return mark + strings.Join(quoted, " ")
}
