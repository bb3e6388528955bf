package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Build builds commands of the repository at root into dir, with additional flags for the go
// command.
func Build(root, dir string, flags []string, commands ...string) error {
	if err := WatchSources(root); err != nil {
		return err
	}
	args := append([]string{"build", "-buildvcs=false", "-o", dir + string(filepath.Separator)}, flags...)
	for _, c := range commands {
		args = append(args, "./cmd/"+c)
	}
	return goCommand(root, args)
}

// BuildBench builds callyard-bench, which `callyard bench` starts, into dir.
func BuildBench(root, dir string) error {
	if err := WatchSources(root); err != nil {
		return err
	}
	return goCommand(filepath.Join(root, "bench"), []string{"build", "-buildvcs=false", "-o", dir + string(filepath.Separator), "./cmd/callyard-bench"})
}

// goCommand runs the go command in a module, without a workspace.
func goCommand(module string, args []string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = module, append(os.Environ(), "GOWORK=off")
	if slices.Contains(args, "-race") {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// WatchSources opens every Go file of the programs. The go command caches the results of
// tests and reuses them while the files that the tests opened are unchanged. It does not
// know the sources of programs that a test built. It considers only files
// that are opened while the tests run, so this is not done before them.
func WatchSources(root string) error {
	for _, dir := range []string{"cmd", "internal", "pkg", "clients/go", "bench"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			// A file may disappear in between if the tree is being edited.
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
