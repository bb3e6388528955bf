// Package goldentest compares the output of a test with a golden file.
//
// It owns the flag -update of the test binaries that import it, which writes such files. It
// compares texts and knows no formats.
package goldentest

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Update makes tests write their golden files.
var Update = flag.Bool("update", false, "write the golden files of this package")

// Text compares a text with a file, whose path is relative to the package of the test. With
// -update it writes the file first. A file must not be used by more than one test at a time.
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
