package bus

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// constants are those of names.go with their values; a name stands for the prefix of
// its subjects, for a stream or for a table.
func constants(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(gotoken.NewFileSet(), "names.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != gotoken.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			for i, name := range v.Names {
				value := ""
				ast.Inspect(v.Values[i], func(n ast.Node) bool {
					if l, ok := n.(*ast.BasicLit); ok && l.Kind == gotoken.STRING {
						text, err := strconv.Unquote(l.Value)
						if err != nil {
							t.Fatal(err)
						}
						value += text
					}
					return true
				})
				found[name.Name] = value
			}
		}
	}
	return found
}

func TestEverySubjectStreamAndTableBelongsToARole(t *testing.T) {
	var publish, subscribe []string
	for _, r := range Roles() {
		publish, subscribe = append(publish, r.Publish...), append(subscribe, r.Subscribe...)
	}
	has := func(list []string, part string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return s == part || strings.HasPrefix(s, part) })
	}
	all := constants(t)
	if len(all) < 30 {
		t.Fatalf("only %d constants were found", len(all))
	}
	for name, value := range all {
		switch name := strings.ToLower(name); {
		case strings.HasPrefix(name, "stream"):
			if !has(publish, api+"STREAM.INFO."+value) {
				t.Errorf("no role may open the stream %s (%s): give it to one in roles.go", value, name)
			}
		case strings.HasPrefix(name, "bucket"):
			if !has(publish, api+"STREAM.INFO."+kvStream+value) || !has(publish, kvSubject+value+".") {
				t.Errorf("no role may use the table %s (%s): give it to one in roles.go", value, name)
			}
		case strings.HasPrefix(name, "subject"):
			if !has(publish, prefix+value) {
				t.Errorf("no role may publish on %s%s (%s): give it to one in roles.go", prefix, value, name)
			}
		}
	}
	if len(subscribe) == 0 {
		t.Error("nobody listens")
	}
}

func TestNoRoleMayUseEverything(t *testing.T) {
	for _, r := range Roles() {
		for _, s := range append(slices.Clone(r.Publish), r.Subscribe...) {
			if s == ">" || strings.HasPrefix(s, "*") || strings.HasPrefix(s, api+">") || strings.HasPrefix(s, api+"*") || s == prefix+">" {
				t.Errorf("%s may use %q", r.Name, s)
			}
		}
		if sorted := slices.Sorted(slices.Values(r.Publish)); len(slices.Compact(sorted)) != len(r.Publish) {
			t.Errorf("%s has something twice", r.Name)
		}
	}
}
