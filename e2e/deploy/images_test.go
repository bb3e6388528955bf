package deploy_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ignores is the content of a .dockerignore file. The last line that matches a file decides.
type ignores []string

func (lines ignores) excludes(name string) bool {
	excluded := false
	for _, line := range lines {
		pattern, included := strings.CutPrefix(line, "!")
		everywhere, found := strings.CutPrefix(pattern, "**/")
		matches := pattern == "**" || name == pattern || strings.HasPrefix(name, pattern+"/")
		if found {
			matches = slices.Contains(strings.Split(name, "/"), everywhere)
		}
		if matches {
			excluded = !included
		}
	}
	return excluded
}

// buildContext returns the files of the repository that the engine gets to build the image of a role.
func buildContext(t *testing.T) []string {
	t.Helper()
	lines := ignores(strings.Fields(read(t, "images/Dockerfile.dockerignore")))
	var files []string
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", ".cache", "node_modules"}, d.Name()) {
			return filepath.SkipDir
		}
		if short, _ := filepath.Rel("..", name); d.Type().IsRegular() && !lines.excludes(filepath.ToSlash(short)) {
			files = append(files, filepath.ToSlash(short))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// copies does a COPY instruction in dir: it copies the sources, all but the last argument, from the build context.
func copies(t *testing.T, context []string, dir string, args []string) {
	t.Helper()
	to := args[len(args)-1]
	for _, from := range args[:len(args)-1] {
		found := false
		for _, name := range context {
			below, inside := strings.CutPrefix(name, from+"/")
			if from == "." {
				below, inside = name, true
			} else if name == from {
				below, inside = path.Base(name), true
			}
			if !inside {
				continue
			}
			found = true
			target := filepath.Join(dir, to, filepath.FromSlash(below))
			if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, target, read(t, filepath.Join("..", filepath.FromSlash(name))))
		}
		if !found {
			t.Errorf("Dockerfile copies %s, which is not in its build context", from)
		}
	}
}

// TestImagesHaveTheSourcesThatTheyAreBuiltFrom follows the build stage of the Dockerfile that compose uses, without an
// engine: what it copies must be enough to resolve the modules and the packages of each program.
func TestImagesHaveTheSourcesThatTheyAreBuiltFrom(t *testing.T) {
	stage, _, found := strings.Cut(read(t, "images/Dockerfile"), "\nFROM scratch")
	if !found {
		t.Fatal("the Dockerfile has no second stage")
	}
	context, dir := buildContext(t), t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %s with the files of the image: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	for line := range strings.Lines(stage) {
		switch args := strings.Fields(line); {
		case len(args) > 2 && args[0] == "COPY":
			copies(t, context, dir, args[1:])
		case strings.Contains(line, "go mod download"):
			run("mod", "download") // also reads the module that go.mod replaces by a folder
		}
	}
	for _, role := range []string{"callyard", "frontdoor", "approver", "worker"} {
		run("list", "-deps", "./cmd/"+role)
	}
	run("list", "-deps", "./deploy/images/demo")
}
