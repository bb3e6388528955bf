package housetest

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEveryNameIsDefinedOnMacOS finds names that only the files for Linux define. Compiling all packages
// for macOS would take minutes.
func TestEveryNameIsDefinedOnMacOS(t *testing.T) {
	mac := build.Default
	mac.GOOS, mac.GOARCH, mac.CgoEnabled = "darwin", "arm64", false
	files := token.NewFileSet()
	differ := map[string]bool{} // the folders in which macOS leaves out a file
	packages := map[string][]*ast.File{}
	err := filepath.WalkDir(moduleRoot, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != moduleRoot && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		dir := filepath.Dir(path)
		matches, err := mac.MatchFile(dir, d.Name())
		if err != nil || !matches {
			differ[dir] = true
			return err
		}
		f, err := parser.ParseFile(files, path, nil, 0)
		if err == nil {
			packages[dir] = append(packages[dir], f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(differ) < 5 {
		t.Errorf("only %d folders have files for Linux alone, so this proves little", len(differ))
	}
	for dir := range differ {
		for _, id := range undefined(packages[dir]) {
			t.Errorf("%s: %s is not defined on macOS", files.Position(id.Pos()), id.Name)
		}
	}
}

func TestUndefinedNamesAreFound(t *testing.T) {
	const one, two = `package p
import "fmt"
type T[K any] struct{ a K }
func (t T[K]) b(c int) (d string) { e := T[int]{a: c}; fmt.Println(e, here, missing(c)); return }`, `package p
var here = len("x")
func missed() {}`
	files := token.NewFileSet()
	var all []*ast.File
	for _, text := range []string{one, two} {
		f, err := parser.ParseFile(files, "", text, 0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	if got := undefined(all); len(got) != 1 || got[0].Name != "missing" {
		t.Errorf("found %v", got)
	}
}

// undefined returns the names that no file of a folder defines. It leaves out those before a dot, which
// may be imported packages.
func undefined(folder []*ast.File) (names []*ast.Ident) {
	defined := map[string]bool{}
	for _, f := range folder {
		for _, d := range f.Decls {
			for _, name := range definedBy(d) {
				defined[f.Name.Name+"."+name] = true
			}
		}
	}
	for _, f := range folder {
		imported := map[*ast.Ident]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if id, ok := s.X.(*ast.Ident); ok {
					imported[id] = true
				}
			}
			return true
		})
		names = append(names, slices.DeleteFunc(slices.Clone(f.Unresolved), func(id *ast.Ident) bool {
			return imported[id] || types.Universe.Lookup(id.Name) != nil || defined[f.Name.Name+"."+id.Name]
		})...)
	}
	return names
}

// definedBy returns the names that a declaration adds to its package.
func definedBy(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, id := range s.Names {
					names = append(names, id.Name)
				}
			}
		}
	}
	return names
}
