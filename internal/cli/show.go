package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// showError prints an error for people: a sentence or more, and for a wrong
// command line the way to its help.
func showError(w io.Writer, err error) {
	var status statusError
	if err == nil || errors.As(err, &status) {
		return
	}
	text := strings.TrimRight(err.Error(), "\n")
	if text == "" {
		return
	}
	fmt.Fprintln(w, "callyard: "+text)
	if exitCode(err) == exitUsage && !strings.Contains(text, "\n") {
		fmt.Fprintln(w, "Try --help.")
	}
}
