// Command testsum reads the events of "go test -json" on stdin and prints what
// people want to see: one line for each package, the full output of what
// failed, and at last why it failed, in short, and a line with the counts.
//
// The exit status is 1 when anything failed, when no test ran, or, where the
// environment says CI=true, when a test was skipped: a skipped test proves
// nothing. It refuses to judge what it cannot see: the status of go test itself
// is for the caller to check.
package main

import (
	"fmt"
	"os"
)

func main() {
	s := newSummary(os.Stdout, os.Getenv("CI") == "true")
	if err := s.read(os.Stdin); err != nil {
		fmt.Fprintf(os.Stderr, "testsum: reading the test events: %v\n", err)
		os.Exit(1)
	}
	if !s.finish() {
		os.Exit(1)
	}
}
