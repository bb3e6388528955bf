package chaos

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/e2e/proc"
)

func TestMain(m *testing.M) {
	root, err := FindRoot()
	if err == nil {
		err = proc.WatchSources(root) // the go command must not reuse the result of older programs
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
