package hostile

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The table of docs/reference/hostile-input.md and the fuzz tests in the tree must match.
func TestEveryFuzzTestIsInTheTable(t *testing.T) {
	const root = "../.."
	declared := regexp.MustCompile(`(?m)^func (Fuzz\w*)\(`)
	want := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "node_modules" || strings.HasPrefix(name, ".") && path != root) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, found := range declared.FindAllSubmatch(text, -1) {
			name := string(found[1])
			want[name] = append(want[name], filepath.ToSlash(folder))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(want) < 50 {
		t.Fatalf("only %d fuzz tests were found", len(want))
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "hostile-input.md"))
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	rows := map[string][]string{} // folders of the rows with each name
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			continue
		}
		for _, name := range quoted.FindAllStringSubmatch(cells[4], -1) {
			for _, folder := range quoted.FindAllStringSubmatch(cells[3], -1) {
				rows[name[1]] = append(rows[name[1]], folder[1])
			}
		}
	}
	for name, folders := range want {
		for _, folder := range folders {
			if !contains(rows[name], folder) {
				t.Errorf("%s of %s is not in the table of docs/reference/hostile-input.md", name, folder)
			}
		}
		delete(rows, name)
	}
	if diff := cmp.Diff(map[string][]string{}, rows); diff != "" {
		t.Errorf("the table of docs/reference/hostile-input.md has fuzz tests that do not exist:\n%s", diff)
	}
}

func contains(list []string, one string) bool {
	for _, have := range list {
		if have == one {
			return true
		}
	}
	return false
}
