package housetest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"strings"
	"testing"
)

// tenantStores hold what principals of tenants submit, or what is about them. Each exported
// method that takes an id takes the tenant with it.
var tenantStores = []string{
	"internal/store/audit", "internal/store/journal", "internal/store/keytable", "internal/store/ledger",
	"internal/store/outbox", "internal/store/sessiontable", "internal/store/settable", "internal/calls/records",
}

// platformStores hold what belongs to the platform. The comment of each package says so, in
// these words.
var platformStores = []string{
	"internal/store/credentialtable", "internal/store/endtable", "internal/store/noticetable", "internal/store/oauthtable", "internal/store/pintable",
	"internal/store/servertable", "internal/store/slacktable", "internal/store/switchtable",
}

const ofThePlatform = "of the platform"

// idTypes are the types of ids of what a tenant has, and of what chooses among it; idParameters
// are names of parameters that are ids, where they are plain strings.
var (
	idTypes      = []string{"schema.ApprovalID", "schema.BatchID", "schema.CallID", "Filter"}
	idParameters = []string{"id", "key", "name"}
	tenantTypes  = []string{"schema.TenantID", "schema.Tenants"}
)

// TestStoresOfTenantsTakeATenantWithEachID fails on an exported method of a store that takes an
// id and no tenant: whoever calls it could forget to ask whose the record is.
func TestStoresOfTenantsTakeATenantWithEachID(t *testing.T) {
	for _, dir := range tenantStores {
		methods := 0
		for name, raw := range sourcesOf(t, dir) {
			found, n, err := withoutTenant(name, raw)
			if err != nil {
				t.Fatal(err)
			}
			methods += n
			for _, f := range found {
				t.Errorf("%s takes an id and no %s", f, strings.Join(tenantTypes, " or "))
			}
		}
		if methods == 0 {
			t.Errorf("%s has no exported method that takes an id; remove its row, or enter where it went", dir)
		}
	}
}

// TestEachStoreSaysWhoseItIs fails on a store in neither list, and on a store of the platform
// whose package comment does not say so.
func TestEachStoreSaysWhoseItIs(t *testing.T) {
	whose := map[string]bool{}
	for _, dir := range tenantStores {
		whose[dir] = true
	}
	for _, dir := range platformStores {
		whose[dir] = true
		comment := ""
		for name, raw := range sourcesOf(t, dir) {
			file, err := parser.ParseFile(token.NewFileSet(), name, raw, parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			comment += file.Doc.Text()
		}
		if !strings.Contains(strings.Join(strings.Fields(comment), " "), ofThePlatform) {
			t.Errorf("the comment of package %s does not say that it is %s", dir, ofThePlatform)
		}
	}
	all, err := os.ReadDir(moduleRoot + "/internal/store")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if dir := "internal/store/" + d.Name(); d.IsDir() && !whose[dir] {
			t.Errorf("%s is neither among the stores of tenants nor among those of the platform", dir)
		}
	}
}

func TestTheRuleAboutTenantsFindsMethodsWithout(t *testing.T) {
	const source = `package p
func (s *Store) Get(ctx context.Context, id schema.CallID) error { return nil }
func (s *Store) Of(ctx context.Context, tenant schema.TenantID, id schema.CallID) error { return nil }
func (s *Store) Among(of schema.Tenants, ids ...schema.CallID) error { return nil }
func (s *Store) All(ids []schema.BatchID) error { return nil }
func (t Table) End(key string) error { return nil }
func (s *Store) List(f Filter, cursor string) error { return nil }
func (s *Store) Count(cursor string) error { return nil }
func (s *Store) quiet(id schema.CallID) {}
func (l *logs) Read(id schema.CallID) {}
func IDFor(id schema.CallID) schema.ApprovalID { return "" }
type Reader interface { Body(id string) error; Find(tenant schema.TenantID, id string) error }
`
	found, n, err := withoutTenant("internal/p/p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	if want := "internal/p.Store.Get internal/p.Store.All internal/p.Table.End internal/p.Store.List internal/p.Reader.Body"; strings.Join(found, " ") != want || n != 8 {
		t.Errorf("found %q among %d, want %q among 8", strings.Join(found, " "), n, want)
	}
}

// sourcesOf returns the Go files of a package but for its tests, by their names.
func sourcesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(moduleRoot + "/" + dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, e := range entries {
		if name := e.Name(); path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") {
			if all[dir+"/"+name], err = os.ReadFile(moduleRoot + "/" + dir + "/" + name); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// withoutTenant returns the exported methods of a file that take an id and no tenant, and how
// many take an id.
func withoutTenant(name string, raw []byte) (found []string, withID int, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, raw, parser.SkipObjectResolution)
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", name, err)
	}
	look := func(of, method string, params *ast.FieldList) {
		if !ast.IsExported(strings.TrimSuffix(of, ".")) || !ast.IsExported(method) || !takes(params, idTypes, idParameters) {
			return
		}
		if withID++; !takes(params, tenantTypes, nil) {
			found = append(found, path.Dir(name)+"."+of+method)
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			look(methodOf(d), d.Name.Name, d.Type.Params)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				ts, isType := spec.(*ast.TypeSpec)
				if !isType {
					continue
				}
				if of, ok := ts.Type.(*ast.InterfaceType); ok {
					for _, m := range of.Methods.List {
						if f, ok := m.Type.(*ast.FuncType); ok && len(m.Names) == 1 {
							look(ts.Name.Name+".", m.Names[0].Name, f.Params)
						}
					}
				}
			}
		}
	}
	return found, withID, nil
}

// takes reports whether a parameter has one of the types, or is a plain string of one of the
// names.
func takes(params *ast.FieldList, types, names []string) bool {
	for _, p := range params.List {
		for _, t := range types {
			if typeOf(p.Type) == t {
				return true
			}
		}
		for _, n := range p.Names {
			for _, name := range names {
				if n.Name == name && typeOf(p.Type) == "string" {
					return true
				}
			}
		}
	}
	return false
}

// typeOf is the name of a type, or of the items of a list of it.
func typeOf(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		if of, ok := x.X.(*ast.Ident); ok {
			return of.Name + "." + x.Sel.Name
		}
	case *ast.ArrayType:
		return typeOf(x.Elt)
	case *ast.Ellipsis:
		return typeOf(x.Elt)
	}
	return ""
}
