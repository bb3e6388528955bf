package housetest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// retiredWords are names that only this project used, each with its replacement in the terms of the
// field. Words that also have an ordinary meaning, such as "gone" and "together", are not checked.
var retiredWords = map[string]string{
	"box": "sandbox", "boxes": "sandboxes", "boxed": "sandboxed", "unboxed": "sandbox",
	"relay": "egress forwarder or egress proxy", "relays": "egress forwarders",
	"face": "endpoint, channel or adapter", "shelf": "read-ahead buffer", "pile": "per-server queue",
	"haul": "pipeline", "parcel": "asynchronous call",
	"courtesy": "adaptive concurrency limit", "pacer": "rate controller", "headlong": "unpaced",
	"seat": "subscriber", "seats": "subscribers", "teller": "notifier", "bell": "wake-up channel",
	"stretch": "segment", "bunch": "group", "talk": "suspended call",
	"fate": "outcome", "fates": "outcomes", "sighting": "duplicate filter", "sightings": "duplicate filter",
	"kin": "process tree", "hunt": "reap",
	"mend": "repair or fix", "mends": "repairs", "mended": "repaired", "tend": "reconcile",
	"beside": "next to, with or in addition to", "anew": "again",
	"agreed": "approved", "room": "memory budget, reservation or session",
	"stray": "unexpected message", "strange": "unexpected or protocol violation",
}

// TestNoIdentifierUsesARetiredWord checks the declarations in the Go files of every module.
func TestNoIdentifierUsesARetiredWord(t *testing.T) {
	read := 0
	foreign := func(name string) bool {
		base := path.Base(name)
		return name != "." && (base == "node_modules" || strings.HasPrefix(base, "."))
	}
	err := eachGoFile(os.DirFS(moduleRoot), foreign, func(name string, raw []byte) error {
		found, err := retiredIn(name, raw)
		if err != nil {
			return err
		}
		for _, f := range found {
			t.Error(f)
		}
		read++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 1000 {
		t.Errorf("read only %d files", read)
	}
}

func TestARetiredWordIsFound(t *testing.T) {
	for source, want := range map[string]int{
		"package box":                 1,
		"package p; func openBox(){}": 1,
		"package p; type Fate int":    1,
		"package p; type t struct { mendedAt int; relay_image string }":                                        2,
		"package p; func f(kin int) (fates []int) { for hunt := range fates { _ = hunt }; return }":            3,
		"package p; func f() { talk, err := 1, 2; _, _ = talk, err }":                                          1,
		"package p; const (maxSeats = 1)":                                                                      1,
		"package p; import x \"x/box\"; var inbox, outbox, sandbox, surface, tendency = x.Box, x.Box, 1, 2, 3": 0,
	} {
		found, err := retiredIn("p.go", []byte(source))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != want {
			t.Errorf("%s: found %v, want %d", source, found, want)
		}
	}
	if found, err := retiredIn("pkg/kin_linux.go", []byte("package pkg")); err != nil || len(found) != 1 {
		t.Errorf("a file name with a retired word: found %v, %v", found, err)
	}
}

// retiredIn returns a line for each retired word in the name of a file and in its declarations.
func retiredIn(name string, source []byte) ([]string, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []string
	look := func(where, text string) {
		for _, word := range wordsOf(text) {
			if instead := retiredWords[word]; instead != "" {
				found = append(found, fmt.Sprintf("%s: the name %s uses %q; write %s", where, text, word, instead))
			}
		}
	}
	look(name, strings.TrimSuffix(path.Base(name), ".go"))
	declare := func(expressions ...ast.Expr) {
		for _, e := range expressions {
			if id, ok := e.(*ast.Ident); ok && id != nil {
				look(set.Position(id.Pos()).String(), id.Name)
			}
		}
	}
	declareAll := func(ids []*ast.Ident) {
		for _, id := range ids {
			declare(id)
		}
	}
	declare(file.Name)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			declare(n.Name)
		case *ast.TypeSpec:
			declare(n.Name)
		case *ast.ValueSpec:
			declareAll(n.Names)
		case *ast.Field:
			declareAll(n.Names)
		case *ast.ImportSpec:
			if n.Name != nil {
				declare(n.Name)
			}
		case *ast.LabeledStmt:
			declare(n.Label)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				declare(n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				declare(n.Key, n.Value)
			}
		}
		return true
	})
	slices.Sort(found)
	return slices.Compact(found), nil
}

// wordsOf splits an identifier or a file name into its words, in lower case.
func wordsOf(name string) []string {
	var words []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
		}
		word = word[:0]
	}
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) {
			end()
			continue
		}
		starts := unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if starts {
			end()
		}
		word = append(word, r)
	}
	end()
	return words
}
