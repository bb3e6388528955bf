// Package goldentest compares what a test gets with a file of its package.
//
// It owns the flag -update of the test binaries that import it, which writes such files. It
// refuses to know formats: it compares texts.
package goldentest

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Update says that golden files are to be written.
var Update = flag.Bool("update", false, "write the golden files of this package")

// Text compares a text with a file, whose path is relative to the package of the test. Under
// -update it writes the file first. Only one test may use a file at a time.
func Text(t testing.TB, path, got string) {
	t.Helper()
	if *Update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
