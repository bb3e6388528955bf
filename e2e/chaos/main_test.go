package chaos

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if err := watchSources(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// watchSources looks at the files that the programs are made of: the go command
// keeps the result of a test only while what the test looked at is as it was.
func watchSources() error {
	root, err := FindRoot()
	if err != nil {
		return err
	}
	for _, dir := range []string{"cmd", "internal", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			if _, err := os.Stat(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("looking at the sources: %w", err)
		}
	}
	return nil
}
