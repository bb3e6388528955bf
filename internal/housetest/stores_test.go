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

// tenantStores hold data of tenants or about them. Each exported method that takes an id must also
// take the tenant.
var tenantStores = []string{
	"internal/store/audit", "internal/store/journal", "internal/store/keytable", "internal/store/ledger",
	"internal/store/outbox", "internal/store/sessiontable", "internal/store/settable", "internal/calls/records",
}

// platformStores hold data of the platform. The package comment of each must contain
// [ofThePlatform].
var platformStores = []string{
	"internal/store/credentialtable", "internal/store/endtable", "internal/store/noticetable", "internal/store/oauthtable", "internal/store/pintable",
	"internal/store/servertable", "internal/store/slacktable", "internal/store/switchtable",
}

const ofThePlatform = "of the platform"

// idTypes are the types of a tenant's ids and filters. idParameters are the names of parameters that
// are ids if they are plain strings.
var (
	idTypes      = []string{"schema.ApprovalID", "schema.BatchID", "schema.CallID", "Filter"}
	idParameters = []string{"id", "key", "name"}
	tenantTypes  = []string{"schema.TenantID", "schema.Tenants"}
)

// TestStoresOfTenantsTakeATenantWithEachID fails on an exported method of a store that takes an id but
// no tenant: a caller could forget to check the tenant of the record.
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
				t.Errorf("%s takes an id but no %s: a caller could forget to check the tenant", f, strings.Join(tenantTypes, " or "))
			}
		}
		if methods == 0 {
			t.Errorf("%s has no exported method that takes an id; remove it from tenantStores, or update its path", dir)
		}
	}
}

// TestEachStoreIsDeclaredForTenantsOrPlatform fails on a store in neither list, and on a store of the platform whose
// package comment does not contain [ofThePlatform].
func TestEachStoreIsDeclaredForTenantsOrPlatform(t *testing.T) {
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
			t.Errorf("the comment of package %s does not contain %q", dir, ofThePlatform)
		}
	}
	all, err := os.ReadDir(moduleRoot + "/internal/store")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if dir := "internal/store/" + d.Name(); d.IsDir() && !whose[dir] {
			t.Errorf("%s is in neither tenantStores nor platformStores; add it to one of them", dir)
		}
	}
}

func TestStoreMethodsWithoutTenantAreFound(t *testing.T) {
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
		t.Errorf("found %q among %d methods, want %q among 8", strings.Join(found, " "), n, want)
	}
}

// sourcesOf returns the Go files of a package without its tests, by name.
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

// withoutTenant returns the exported methods of a file that take an id but no tenant, and the number
// of methods that take an id.
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

// takes reports whether a parameter has one of the types, or one of the names and type string.
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

// typeOf returns the name of a type, or of the elements of a slice.
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
