package housetest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// moduleRoot is the root of the module, relative to this package.
const moduleRoot = "../.."

// TestPackagesFollowTheArchitectureRules applies the rules to the whole tree.
func TestPackagesFollowTheArchitectureRules(t *testing.T) {
	tree := os.DirFS(moduleRoot)
	units, err := load(tree)
	if err != nil {
		t.Fatal(err)
	}
	if len(units) < 10 {
		t.Fatalf("found only %d packages: is this the root of the module?", len(units))
	}
	for _, v := range check(moduleName(t, tree), units) {
		t.Error(v)
	}
}

func moduleName(t *testing.T, tree fs.FS) string {
	t.Helper()
	raw, err := fs.ReadFile(tree, "go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if name, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(name)
		}
	}
	t.Fatal("go.mod has no module line")
	return ""
}

// TestArchitectureRulesNameExistingPackages fails on rows whose package or library no longer exists.
func TestArchitectureRulesNameExistingPackages(t *testing.T) {
	units, err := load(os.DirFS(moduleRoot))
	if err != nil {
		t.Fatal(err)
	}
	imports := func(dir, library string) bool {
		return slices.ContainsFunc(units, func(u *unit) bool {
			return within(u.dir, dir) && slices.ContainsFunc(u.files, func(f file) bool {
				return slices.ContainsFunc(f.imports, func(r reference) bool { return within(r.what, library) })
			})
		})
	}
	for _, l := range layers {
		if !slices.ContainsFunc(units, func(u *unit) bool { return within(u.dir, l.root) }) {
			t.Errorf("layers has a row for %s, which does not exist: remove the row", l.root)
		}
	}
	for _, k := range knowCallStores {
		if !slices.ContainsFunc(units, func(u *unit) bool {
			return slices.ContainsFunc(u.files, func(f file) bool {
				return within(f.path, k.root) && !f.test && slices.ContainsFunc(f.imports, func(r reference) bool {
					return slices.ContainsFunc(callStores, func(s string) bool { return strings.HasSuffix(r.what, "/"+s) })
				})
			})
		}) {
			t.Errorf("%s imports no store of calls: remove it from knowCallStores", k.root)
		}
		if k.reason == "" {
			t.Errorf("the row of %s in knowCallStores has no reason", k.root)
		}
	}
	for _, row := range libraries {
		for _, owner := range row.owners {
			if !imports(owner, row.root) {
				t.Errorf("%s does not use %s: remove it from the owners in libraries", owner, row.root)
			}
		}
	}
}

// TestEveryArchitectureViolationIsFound checks the trees in testdata. Each file starts with "want: TEXT" lines, one
// for each violation in any order, followed by the tree.
func TestEveryArchitectureViolationIsFound(t *testing.T) {
	fixtures, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(fixtures) < 10 {
		t.Fatalf("%d fixtures, %v", len(fixtures), err)
	}
	for _, name := range fixtures {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			wants, tree := fixture(string(raw))
			units, err := load(tree)
			if err != nil {
				t.Fatal(err)
			}
			found := check("example.com/m", units)
			for _, v := range found {
				if v.reason == "" {
					t.Errorf("the violation has no reason: %v", v)
				}
				i := slices.IndexFunc(wants, func(want string) bool { return strings.Contains(v.String(), want) })
				if i < 0 {
					t.Errorf("unexpected violation: %v", v)
					continue
				}
				wants = slices.Delete(wants, i, i+1)
			}
			for _, want := range wants {
				t.Errorf("missing violation: %s", want)
			}
		})
	}
}

// fixture splits a fixture into its wanted violations and its files.
func fixture(text string) (wants []string, tree fstest.MapFS) {
	tree = fstest.MapFS{}
	var current *fstest.MapFile
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(trimmed, "-- "); ok {
			current = new(fstest.MapFile)
			tree[strings.TrimSuffix(name, " --")] = current
			continue
		}
		if want, ok := strings.CutPrefix(trimmed, "want: "); ok && current == nil {
			wants = append(wants, want)
		}
		if current != nil {
			current.Data = append(current.Data, line...)
		}
	}
	return wants, tree
}

func TestAFileOverTheLimitIsFoundAndOneAtItIsNot(t *testing.T) {
	of := func(lines int) fstest.MapFS {
		text := "// Package bus is long.\npackage bus\n"
		text += strings.Repeat("//\n", lines-strings.Count(text, "\n"))
		return fstest.MapFS{"pkg/bus/bus.go": {Data: []byte(text)}}
	}
	for lines, want := range map[int]int{maxLines: 0, maxLines + 1: 1} {
		units, err := load(of(lines))
		if err != nil {
			t.Fatal(err)
		}
		if found := check("example.com/m", units); len(found) != want {
			t.Errorf("a file of %d lines: %v", lines, found)
		}
	}
}

func TestATypeWithTooManyMethodsIsFound(t *testing.T) {
	for n, want := range map[int]int{maxMethods: 0, maxMethods + 1: 1} {
		text := "// Package bus has a type.\npackage bus\n\ntype (\n\tT[K any] struct{}\n\tOther struct{}\n)\n\nfunc (Other) M() {}\n"
		for i := range n {
			star := []string{"", "*"}[i%2]
			text += fmt.Sprintf("func (t %sT[K]) M%d() {}\n", star, i)
		}
		units, err := load(fstest.MapFS{
			"pkg/bus/bus.go":      {Data: []byte(text)},
			"pkg/bus/bus_test.go": {Data: []byte("package bus\n\nfunc (t T[K]) Test() {}\n")},
		})
		if err != nil {
			t.Fatal(err)
		}
		if found := check("example.com/m", units); len(found) != want || want > 0 && !strings.Contains(found[0].String(), "the type T has 41 methods") {
			t.Errorf("a type with %d methods: %v", n, found)
		}
	}
}

func TestLargePackageMustGiveAReason(t *testing.T) {
	of := func(lines int, comment string) (found []violation) {
		tree := fstest.MapFS{}
		text := "// Package bus is large. " + comment + "\npackage bus\n"
		for n := 0; lines > 0; n++ {
			part := min(lines, maxLines)
			tree[fmt.Sprintf("pkg/bus/%d.go", n)] = &fstest.MapFile{Data: []byte(text + strings.Repeat("//\n", part-strings.Count(text, "\n")))}
			text, lines = "package bus\n", lines-part
		}
		units, err := load(tree)
		if err != nil {
			t.Fatal(err)
		}
		return check("example.com/m", units)
	}
	if found := of(maxPackageLines, ""); len(found) != 0 {
		t.Errorf("a package at the limit: %v", found)
	}
	if found := of(maxPackageLines+1, onePackage+" it is one transport."); len(found) != 0 {
		t.Errorf("a large package with a reason: %v", found)
	}
	if found := of(maxPackageLines+1, ""); len(found) != 1 || !strings.Contains(found[0].String(), "the package has 2501 lines") {
		t.Errorf("a large package without a reason: %v", found)
	}
}

func TestAFileThatDoesNotParseIsAnError(t *testing.T) {
	if _, err := load(fstest.MapFS{"pkg/bus/bus.go": {Data: []byte("package")}}); err == nil || !strings.Contains(err.Error(), "pkg/bus/bus.go") {
		t.Error(err)
	}
}

func TestArchitectureRulesHaveReasonsAndLayers(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range layers {
		if seen[l.root] {
			t.Errorf("layers has two rows for %s", l.root)
		}
		seen[l.root] = true
	}
	for _, row := range libraries {
		if row.reason == "" {
			t.Errorf("the row of %s in libraries has no reason", row.root)
		}
		for _, owner := range row.owners {
			if _, ok := placed(owner); !ok {
				t.Errorf("libraries permits %s to %s, which belongs to no layer", row.root, owner)
			}
		}
	}
	if fmt.Sprint(command) != "the commands" {
		t.Error("the list of rank names does not match the ranks")
	}
}
