package fabric_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

func TestDocsShowTheExampleUnchanged(t *testing.T) {
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../docs/how-to/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(docs, append(append([]byte("```go\n"), example...), "```\n"...)) {
		t.Error("docs/how-to/testing.md does not show e2e/fabric/example_test.go as it is")
	}
}

// A module outside this repository gets the packages only through the replacements that the
// page shows: the modules have no releases, and replacements in e2e/go.mod do not apply to it.
func TestAModuleThatFollowsTheDocsFindsThePackages(t *testing.T) {
	docs, err := os.ReadFile("../../docs/how-to/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	edit := []string{"mod", "edit"}
	for _, found := range regexp.MustCompile(`-replace (\S+)=\.\./callyard(\S*)`).FindAllSubmatch(docs, -1) {
		edit = append(edit, "-replace", string(found[1])+"="+root+string(found[2]))
	}
	dir := t.TempDir()
	for from, to := range map[string]string{"example_test.go": "example_test.go", "../go.sum": "go.sum"} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// Without a proxy, Go finds the modules in their folders and in the module cache only. The example
	// itself is compiled in this package.
	for _, args := range [][]string{{"mod", "init", "example.com/outside"}, edit, {"list", "-mod=mod", "-deps", "-test", "."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GOFLAGS=-trimpath")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
}
