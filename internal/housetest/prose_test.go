package housetest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// phrase is a wording that only this project used.
type phrase struct {
	pattern string // a regular expression; a space matches any white space, and only whole words match
	instead string
	except  string // following text with which the phrase has its ordinary meaning
}

// retiredPhrases are retired wordings of prose, each with its plain replacement. Retired names are in
// [retiredWords].
var retiredPhrases = []phrase{
	{pattern: "a yes|say yes|says yes|said yes", instead: "an approval, to approve"},
	{pattern: "a no|say no|says no|said no", instead: "a denial, to deny", except: `^[-.]|^ (longer|more)\b`},
	{pattern: "anew", instead: "again"},
	{pattern: "beside", instead: "next to, with or in addition to"},
	{pattern: "(is|are|was|were) over", instead: "has ended", except: `^ (\d|(its|the|a|an|all|half|this|that|one|two|HTTP|REST|MCP|NATS)\b)`},
	{pattern: "so many|how-manieth", instead: "that number of, the number of, attempt n"},
	{pattern: "way out|relay|relays", instead: "egress, egress proxy"},
	{pattern: "boxed|boxes|a box|the box|its box", instead: "sandbox"},
	{pattern: "take the question back|takes the question back", instead: "withdraw the request"},
	{pattern: "in your words", instead: "comment"},
	{pattern: "none of these", instead: "other"},
	{pattern: "cut off|cuts off", instead: "partitioned, disconnected or truncated"},
	{pattern: "goes on|go on|went on|going on", instead: "continue or resume"},
	{pattern: "comes? back|came back", instead: "return, or be available again"},
	{pattern: "gives? way|headlong", instead: "yield, unpaced"},
	{pattern: "how many (of|there|are|is)", instead: "the number of"},
	{pattern: "what of|who of", instead: "the part that, the one that"},
	{pattern: "mend|mends|mended", instead: "repair or fix"},
	{pattern: "fate|fates", instead: "outcome"},
	{pattern: "courtesy|pacer", instead: "adaptive concurrency limit, rate controller"},
	{pattern: "stray", instead: "unexpected"},
}

// allowedPhrases are the places where a retired phrase is permitted, each with the reason.
var allowedPhrases = map[string]string{}

// plainTexts are the extensions of other files whose whole text is checked: pages, style sheets,
// scripts and configuration.
var plainTexts = []string{".css", ".dot", ".html", ".js", ".mjs", ".sh", ".tmpl", ".yaml", ".yml"}

// commentRoots are the folders whose Go comments are checked.
var commentRoots = []string{"bench", "clients/go", "cmd", "deploy", "e2e", "internal", "pkg"}

// productRoots are the folders whose Go strings are texts of the product.
var productRoots = []string{"clients/go", "cmd", "internal", "pkg"}

var (
	linkTarget    = regexp.MustCompile(`\]\([^)\s]*\)`)
	htmlTag       = regexp.MustCompile(`<a id="[^"]*">`)
	generatedFile = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	prosePatterns = compilePhrases()
)

func compilePhrases() (all []*regexp.Regexp) {
	for _, p := range retiredPhrases {
		all = append(all, regexp.MustCompile(`(?i)\b(?:`+strings.ReplaceAll(p.pattern, " ", `\s+`)+`)\b`))
	}
	return all
}

// retiredProse returns a line for each retired phrase in a text. line is the number of its first line.
func retiredProse(name string, line int, text string) (found []string) {
	for i, pattern := range prosePatterns {
		p := retiredPhrases[i]
		for _, at := range pattern.FindAllStringIndex(text, -1) {
			rest := strings.Join(strings.Fields(" . " + text[at[1]:min(len(text), at[1]+40)])[1:], " ")
			if at[1] < len(text) && (text[at[1]] == ' ' || text[at[1]] == '\n') {
				rest = " " + rest
			}
			if p.except != "" && regexp.MustCompile(p.except).MatchString(rest) {
				continue
			}
			said := strings.ToLower(strings.Join(strings.Fields(text[at[0]:at[1]]), " "))
			if allowedPhrases[name+": "+said] != "" {
				continue
			}
			found = append(found, fmt.Sprintf("%s:%d: the phrase %q is retired; write: %s", name, line+strings.Count(text[:at[0]], "\n"), said, p.instead))
		}
	}
	return found
}

// proseOfMarkdown returns a page without link targets and code spans.
func proseOfMarkdown(name, text string) string {
	if name == "CHANGELOG.md" { // published release notes are not changed
		_, unreleased, _ := strings.Cut(text, "## [Unreleased]")
		unreleased, _, _ = strings.Cut(unreleased, "\n## [")
		before, _, _ := strings.Cut(text, "## [Unreleased]")
		text = before + unreleased
	}
	blank := func(part string) string { return strings.Repeat("\n", strings.Count(part, "\n")) }
	text = linkTarget.ReplaceAllString(text, "]()")
	text = htmlTag.ReplaceAllString(text, "")
	return codeSpan.ReplaceAllStringFunc(text, func(span string) string { return "`" + blank(span) + "`" })
}

// proseOfGo calls do for each comment of a Go file, and for each string if literals is set.
func proseOfGo(name string, source []byte, literals bool, do func(line int, text string)) error {
	if generatedFile.Match(source) {
		return nil
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, group := range file.Comments {
		do(set.Position(group.Pos()).Line, group.Text())
	}
	if !literals {
		return nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if n.Kind != token.STRING {
				break
			}
			if text, err := strconv.Unquote(n.Value); err == nil {
				do(set.Position(n.Pos()).Line, text)
			}
		}
		return true
	})
	return nil
}

// isProduct reports whether the string literals of a Go file are texts of the product: errors, log
// messages and help. The strings of tests and of the benchmark are not.
func isProduct(name string) bool {
	return isWithin(path.Dir(name), productRoots) && !strings.HasSuffix(name, "_test.go")
}

// allProse returns a line for each retired phrase below the root of fsys.
func allProse(fsys fs.FS) (found []string, pages, files int, err error) {
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			base := path.Base(name)
			if name != "." && (base == "node_modules" || base == "dist" || strings.HasPrefix(base, ".") && base != ".github") {
				return fs.SkipDir
			}
			return nil
		}
		markdown, source := path.Ext(name) == ".md", path.Ext(name) == ".go" && isWithin(path.Dir(name), commentRoots)
		plain := slices.Contains(plainTexts, path.Ext(name)) && path.Base(path.Dir(name)) != "testdata"
		if !markdown && !source && !plain || name == "internal/housetest/prose_test.go" || name == "internal/housetest/words_test.go" {
			return nil
		}
		raw, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if markdown {
			pages++
			found = append(found, retiredProse(name, 1, proseOfMarkdown(name, string(raw)))...)
			return nil
		}
		files++
		if plain {
			found = append(found, retiredProse(name, 1, string(raw))...)
			return nil
		}
		return proseOfGo(name, raw, isProduct(name), func(line int, text string) {
			found = append(found, retiredProse(name, line, text)...)
		})
	})
	slices.Sort(found)
	return slices.Compact(found), pages, files, err
}

// TestProseUsesNoRetiredPhrase fails on retired phrases in pages, in the comments of the Go files below
// [commentRoots], and in the strings of the product: error and log messages and help. It runs as
// `make prose`.
func TestProseUsesNoRetiredPhrase(t *testing.T) {
	found, pages, files, err := allProse(os.DirFS(moduleRoot))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
	if pages < 70 || files < 1000 {
		t.Errorf("read only %d pages and %d Go files", pages, files)
	}
}

func TestARetiredPhraseIsFound(t *testing.T) {
	tree := fstest.MapFS{
		"README.md":                {Data: []byte("A call waits\nfor a\nyes. See [here](docs/beside.md#so-many) and `anew`.\nThe call is over.\n")},
		"docs/good.md":             {Data: []byte("The body is over 1 MiB. This is a no-op. A result is over the limit. Inbox. He was overruled.\n")},
		"CHANGELOG.md":             {Data: []byte("# Changes\n\n## [Unreleased]\n\n- Fixed anew.\n\n## [0.1.0]\n\n- Said anew.\n")},
		"e2e/a.go":                 {Data: []byte("// Package e2e stands\n// beside it.\npackage e2e\n\n/* It goes\non. */\nvar x = \"cut off\"\n")},
		"pkg/c.go":                 {Data: []byte("package pkg\n\nvar err = \"the call is over\" // ok\n")},
		"pkg/c_test.go":            {Data: []byte("package pkg\n\nvar want = \"the call is over\"\n")},
		"internal/web/page.html":   {Data: []byte("<p>It goes on.</p>\n")},
		"e2e/b.go":                 {Data: []byte("// Code generated by hand. DO NOT EDIT.\n\n// It stands beside it.\npackage e2e\n")},
		"node_modules/x/README.md": {Data: []byte("beside\n")},
	}
	got, pages, files, err := allProse(tree)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`CHANGELOG.md:5: the phrase "anew" is retired; write: again`,
		`README.md:2: the phrase "a yes" is retired; write: an approval, to approve`,
		`README.md:4: the phrase "is over" is retired; write: has ended`,
		`e2e/a.go:2: the phrase "beside" is retired; write: next to, with or in addition to`,
		`e2e/a.go:5: the phrase "goes on" is retired; write: continue or resume`,
		`internal/web/page.html:1: the phrase "goes on" is retired; write: continue or resume`,
		`pkg/c.go:3: the phrase "is over" is retired; write: has ended`,
	}
	if !slices.Equal(got, want) || pages != 3 || files != 5 {
		t.Errorf("%d pages, %d files:\n%s", pages, files, strings.Join(got, "\n"))
	}
	literals := 0
	err = proseOfGo("e2e/a.go", tree["e2e/a.go"].Data, true, func(line int, text string) { literals += len(retiredProse("a.go", line, text)) })
	if err != nil || literals != 3 {
		t.Errorf("with strings: %d, %v", literals, err)
	}
}
