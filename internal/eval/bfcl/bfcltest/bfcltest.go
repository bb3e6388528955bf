// Package bfcltest gives tests the official checker of BFCL and its data.
package bfcltest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Official returns a Python with bfcl-eval, and the data set of that package as readers take it.
// CALLYARD_TEST_BFCL names the Python; scripts/test.sh installs it. Without it the test is
// skipped.
func Official(t testing.TB) (python, data string) {
	t.Helper()
	python = os.Getenv("CALLYARD_TEST_BFCL")
	if python == "" {
		t.Skip("CALLYARD_TEST_BFCL names no Python with bfcl-eval")
	}
	where, err := exec.CommandContext(t.Context(), python, "-c", "import bfcl_eval; print(list(bfcl_eval.__path__)[0])").Output()
	if err != nil {
		t.Fatal(err)
	}
	return python, "bfcl:" + strings.TrimSpace(string(where)) + "/data"
}
