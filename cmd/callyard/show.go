package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"charm.land/fang/v2"
)

// showError prints an error for people: a sentence or more, and for a wrong
// command line the way to its help.
func showError(w io.Writer, _ fang.Styles, err error) {
	var status statusError
	if errors.As(err, &status) {
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
