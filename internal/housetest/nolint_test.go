package housetest

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The linter nolintlint only checks directives for enabled linters. A directive for a disabled linter
// suppresses nothing, but looks as if it did.
func TestNolintDirectivesNameEnabledLinters(t *testing.T) {
	tree := os.DirFS(moduleRoot)
	raw, err := fs.ReadFile(tree, ".golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(raw), "\n  enable:\n")
	var enabled []string
	for line := range strings.Lines(list) {
		name, ok := strings.CutPrefix(line, "    - ")
		if !ok {
			break
		}
		enabled = append(enabled, strings.TrimSpace(name))
	}
	if len(enabled) < 5 {
		t.Fatalf("found only the enabled linters %v: was .golangci.yml parsed correctly?", enabled)
	}
	directive := regexp.MustCompile(`//nolint:([\w,]+)`)
	err = eachGoFile(tree, skipped, func(name string, source []byte) error {
		for _, found := range directive.FindAllSubmatch(source, -1) {
			for linter := range strings.SplitSeq(string(found[1]), ",") {
				if !slices.Contains(enabled, linter) {
					t.Errorf("%s: nolint:%s is for a linter that .golangci.yml does not enable; remove the directive and keep its reason as a comment", name, linter)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
