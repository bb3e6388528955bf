package housetest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// idNames maps the names of fields and parameters that hold an id, in lower case, to its type. Lists
// of ids have an "s" at the end of their name.
var idNames = map[string]string{
	"callid": "schema.CallID", "approvalid": "schema.ApprovalID", "batchid": "schema.BatchID",
	"serverid": "schema.ServerID", "server": "schema.ServerID",
	"workerid": "schema.WorkerID", "worker": "schema.WorkerID",
	"tenantid": "schema.TenantID", "tenant": "schema.TenantID",
}

// bareIDs are the places where an id may be a plain string, each with the reason. A place is a
// package, or a field or parameter of one.
var bareIDs = []struct{ place, reason string }{
	{"internal/eval", "it reads and writes files and prompts of others"},
	{"internal/agent", "it speaks with models, in their words"},
	{"internal/format", "names of tools for models, made of words"},
	{"internal/telemetry", "labels of metrics"},
	{"internal/launch", "what a process or container is for, in names and log lines"},
	{"internal/settings", "the words of the configuration, of which some are patterns"},
	{"internal/catalog.LabelsFunc", "patterns of the configuration are matched with it"},
	{"internal/toolset.Selector.Server", "a pattern"},
	{"internal/frontdoor/rest/tools.WideSwitchRequest.Server", "a pattern"},
	{"internal/episode.Environment.Uses.server", "a name of the file of an environment"},
	{"pkg/risk", "the words of the policy, of which some are patterns"},
}

// TestIDsAreNotPlainStrings fails on an exported field, or a parameter or result of an exported
// function, that has the name of an id and is a plain string.
func TestIDsAreNotPlainStrings(t *testing.T) {
	read := 0
	used := make([]bool, len(bareIDs))
	skip := func(name string) bool {
		return name != "." && name != "internal" && name != "pkg" && !strings.HasPrefix(name, "internal/") && !strings.HasPrefix(name, "pkg/") || strings.HasSuffix(name, "test")
	}
	err := eachGoFile(os.DirFS(moduleRoot), skip, func(name string, raw []byte) error {
		if strings.HasSuffix(name, "_test.go") {
			return nil
		}
		read++
		found, err := bareIDsIn(name, raw)
		if err != nil {
			return err
		}
	next:
		for _, f := range found {
			for i, b := range bareIDs {
				if strings.HasPrefix(f.place, b.place) {
					used[i] = true
					continue next
				}
			}
			t.Errorf("%s:%d: %s is a plain string; use the type %s", name, f.line, f.place, f.want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 500 {
		t.Errorf("read only %d files", read)
	}
	for i, b := range bareIDs {
		if !used[i] {
			t.Errorf("%s has no id that is a plain string; remove its row from bareIDs", b.place)
		}
	}
}

func TestPlainStringIDsAreFound(t *testing.T) {
	const source = `package p
type T struct { CallID, Tool string; Servers []string; hidden struct{ server string } }
type I interface { Get(batchID string) (worker string) }
func (t *T) Run(f func(server string), id schema.CallID) {}
func quiet(server string) {}
`
	found, err := bareIDsIn("internal/p/p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		got = append(got, strings.TrimPrefix(f.place, "internal/p."))
	}
	if want := "T.CallID T.Servers I.Get.batchID I.Get.worker T.Run.f.server"; strings.Join(got, " ") != want {
		t.Errorf("found %q, want %q", strings.Join(got, " "), want)
	}
}

type bareID struct {
	place string // package.Type.field or package.Function.parameter
	line  int
	want  string
}

// bareIDsIn returns the exported places of a file where an id is a plain string.
func bareIDsIn(name string, raw []byte) ([]bareID, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, raw, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	s := &idScan{fset: fset}
	at := name[:strings.LastIndexByte(name, '/')] + "."
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				s.fields(at+methodOf(d)+d.Name.Name+".", d.Type.Params, true)
				s.fields(at+methodOf(d)+d.Name.Name+".", d.Type.Results, true)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if ts, ok := spec.(*ast.TypeSpec); ok && ts.Name.IsExported() {
					s.expr(at+ts.Name.Name+".", ts.Type)
				}
			}
		}
	}
	return s.found, nil
}

func methodOf(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	x := d.Recv.List[0].Type
	if p, ok := x.(*ast.StarExpr); ok {
		x = p.X
	}
	if id, ok := x.(*ast.Ident); ok {
		return id.Name + "."
	}
	return ""
}

type idScan struct {
	fset  *token.FileSet
	found []bareID
}

// fields checks parameters, or the exported fields of a struct.
func (s *idScan) fields(at string, list *ast.FieldList, all bool) {
	if list == nil {
		return
	}
	for _, f := range list.List {
		for _, n := range f.Names {
			if !all && !n.IsExported() {
				continue
			}
			lower := strings.ToLower(n.Name)
			want := idNames[lower]
			if want == "" {
				want = idNames[strings.TrimSuffix(lower, "s")]
			}
			if want != "" && plainString(f.Type) {
				s.found = append(s.found, bareID{at + n.Name, s.fset.Position(n.Pos()).Line, want})
			}
			s.expr(at+n.Name+".", f.Type)
		}
	}
}

// expr checks the types inside a type.
func (s *idScan) expr(at string, x ast.Expr) {
	switch x := x.(type) {
	case *ast.FuncType:
		s.fields(at, x.Params, true)
		s.fields(at, x.Results, true)
	case *ast.StructType:
		s.fields(at, x.Fields, false)
	case *ast.InterfaceType:
		s.fields(at, x.Methods, false)
	}
}

func plainString(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "string"
	case *ast.ArrayType:
		return plainString(x.Elt)
	case *ast.Ellipsis:
		return plainString(x.Elt)
	}
	return false
}
