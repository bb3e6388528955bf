package housetest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// unit is a directory of Go files: a package and its tests.
type unit struct {
	dir   string // slash-separated, relative to the root of the module
	name  string // package name, without the _test suffix of external tests
	files []file
}

type file struct {
	path     string
	test     bool
	comment  string // the package comment, without directives
	lines    int
	imports  []reference
	literals []reference // string literals other than imports
	selected []reference // "import path" + "." + name, for each used name of an import
	methods  []reference // the receiver type of each method
	tags     []reference // tags of the build constraint
}

// reference is something that a file names, with its position.
type reference struct {
	what string
	line int
}

// load reads every Go file below the root of fsys.
func load(fsys fs.FS) ([]*unit, error) {
	units := map[string]*unit{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skipped(name) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, pkg, err := read(fsys, name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		dir := path.Dir(name)
		u := units[dir]
		if u == nil {
			u = &unit{dir: dir}
			units[dir] = u
		}
		if u.name == "" || !f.test {
			u.name = strings.TrimSuffix(pkg, "_test")
		}
		u.files = append(u.files, f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	sorted := make([]*unit, 0, len(units))
	for _, u := range units {
		sorted = append(sorted, u)
	}
	slices.SortFunc(sorted, func(a, b *unit) int { return strings.Compare(a.dir, b.dir) })
	return sorted, nil
}

// skipped reports whether a directory is not checked: generated code, fixtures, and directories that
// the go command ignores.
func skipped(name string) bool {
	base := path.Base(name)
	return name != "." && (name == "clients" || base == "testdata" || base == "vendor" || base == "node_modules" ||
		strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_"))
}

// eachGoFile calls do for every Go file below the root of fsys, except in directories that skip
// selects. It stops at the first error of do.
func eachGoFile(fsys fs.FS, skip func(name string) bool, do func(name string, source []byte) error) error {
	return fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skip(name) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		source, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		return do(name, source)
	})
}

func read(fsys fs.FS, name string) (file, string, error) {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return file{}, "", err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return file{}, "", err
	}
	f := file{
		path:  name,
		test:  strings.HasSuffix(name, "_test.go"),
		lines: bytes.Count(src, []byte("\n")),
	}
	if tree.Doc != nil {
		f.comment = strings.TrimSpace(tree.Doc.Text())
	}
	line := func(n ast.Node) int { return set.Position(n.Pos()).Line }
	tags, err := constraints(tree)
	if err != nil {
		return file{}, "", err
	}
	for _, tag := range tags {
		f.tags = append(f.tags, reference{tag, line(tree)})
	}
	named := map[string]string{} // local names of imports
	for _, spec := range tree.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return file{}, "", err
		}
		f.imports = append(f.imports, reference{imported, line(spec)})
		if spec.Name != nil {
			named[spec.Name.Name] = imported
		} else {
			named[path.Base(imported)] = imported
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.FuncDecl:
			if name := receiver(n); name != "" {
				f.methods = append(f.methods, reference{name, line(n)})
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				if text, err := strconv.Unquote(n.Value); err == nil {
					f.literals = append(f.literals, reference{text, line(n)})
				}
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && named[x.Name] != "" {
				f.selected = append(f.selected, reference{named[x.Name] + "." + n.Sel.Name, line(n)})
			}
		}
		return true
	})
	return f, tree.Name.Name, nil
}

// receiver returns the receiver type of a method, or "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return ""
	}
	for of := f.Recv.List[0].Type; ; {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr: // of a generic type
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// constraints returns the tags in the build constraint of a file.
func constraints(tree *ast.File) (tags []string, err error) {
	for _, group := range tree.Comments {
		if group.Pos() > tree.Package {
			break
		}
		for _, c := range group.List {
			if !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			if err != nil {
				return nil, err
			}
			tags = append(tags, tagsOf(expr)...)
		}
	}
	return tags, nil
}

func tagsOf(e constraint.Expr) []string {
	switch e := e.(type) {
	case *constraint.AndExpr:
		return append(tagsOf(e.X), tagsOf(e.Y)...)
	case *constraint.OrExpr:
		return append(tagsOf(e.X), tagsOf(e.Y)...)
	case *constraint.NotExpr:
		return tagsOf(e.X)
	case *constraint.TagExpr:
		return []string{e.Tag}
	}
	return nil
}

// testOnly reports whether a unit exists for tests only.
func (u *unit) testOnly() bool {
	return strings.HasSuffix(u.name, "test") || within(u.dir, "e2e") ||
		!slices.ContainsFunc(u.files, func(f file) bool { return !f.test })
}

// within reports whether dir is root or below it.
func within(dir, root string) bool { return dir == root || strings.HasPrefix(dir, root+"/") }
