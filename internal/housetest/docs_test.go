package housetest

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

var (
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	scheme    = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
	codeSpan  = regexp.MustCompile("`[^`]*`")
	inHeading = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	anchorTag = regexp.MustCompile(`<a id="([^"]+)">`)
	// mention is a page named outside of Markdown: in comments, errors, charts, alerts.
	mention = regexp.MustCompile(`(?:^|[^\w/.-]|/main/|\.\./)(docs/[\w./-]+\.md)(#[\w-]+)?`)
)

// page is a Markdown file: the anchors that it has, and its links.
type page struct {
	anchors map[string]bool
	links   []reference
}

// parsePage reads the headings and links of a Markdown file as GitHub does; what is inside of a
// fenced block is neither.
func parsePage(text string) page {
	p := page{anchors: map[string]bool{}}
	fence := ""
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\n")
		if mark := strings.TrimLeft(line, " "); strings.HasPrefix(mark, "```") || strings.HasPrefix(mark, "~~~") {
			switch {
			case fence == "":
				fence = mark[:3]
			case strings.HasPrefix(mark, fence):
				fence = ""
			}
			continue
		}
		if fence != "" {
			continue
		}
		if title := strings.TrimLeft(line, "#"); title != line && strings.HasPrefix(title, " ") {
			p.addAnchor(slug(title))
		}
		for _, m := range anchorTag.FindAllStringSubmatch(line, -1) {
			p.anchors[m[1]] = true
		}
		for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, "`code`"), -1) {
			p.links = append(p.links, reference{m[1], n})
		}
	}
	return p
}

func (p *page) addAnchor(name string) {
	unique := name
	for i := 1; p.anchors[unique]; i++ {
		unique = fmt.Sprintf("%s-%d", name, i)
	}
	p.anchors[unique] = true
}

// slug is the anchor that GitHub gives to a heading.
func slug(title string) string {
	title = inHeading.ReplaceAllString(strings.TrimSpace(title), "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// unresolved lists the relative links and anchors of all Markdown files, and the pages of
// docs that other files name, which do not exist.
func unresolved(tree fs.FS) (broken []string, err error) {
	pages := map[string]page{}
	mentions := map[string][]reference{}
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := path.Base(name); name != "." && (base == "node_modules" || base == "bin" || base == "callyard-data" || base == "chaos-out" || (strings.HasPrefix(base, ".") && base != ".ci" && base != ".github")) {
				return fs.SkipDir
			}
			return nil
		}
		markdown := path.Ext(name) == ".md"
		if !markdown && !slices.Contains([]string{".go", ".yaml", ".yml", ".sh", ".conf", ".txt", ".tpl", ".json", ".ts", ".py", ".dot"}, path.Ext(name)) && path.Base(name) != "Makefile" {
			return nil
		}
		if path.Dir(name) == "internal/housetest" || strings.HasSuffix(name, "package-lock.json") {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		if markdown {
			pages[name] = parsePage(string(text))
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			if !strings.Contains(line, "docs/") {
				continue // the expression is slow
			}
			for _, m := range mention.FindAllStringSubmatch(line, -1) {
				mentions[name] = append(mentions[name], reference{m[1] + m[2], n})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	check := func(from string, line int, target, anchor, written string) {
		if _, err := fs.Stat(tree, target); err != nil {
			broken = append(broken, fmt.Sprintf("%s:%d: %s does not exist", from, line, written))
			return
		}
		if anchor != "" && !pages[target].anchors[anchor] {
			broken = append(broken, fmt.Sprintf("%s:%d: %s has no heading for #%s", from, line, target, anchor))
		}
	}
	for name, p := range pages {
		for _, l := range p.links {
			if scheme.MatchString(l.what) {
				continue
			}
			file, anchor, _ := strings.Cut(l.what, "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			check(name, l.line, target, anchor, l.what)
		}
	}
	for name, all := range mentions {
		for _, m := range all {
			file, anchor, _ := strings.Cut(m.what, "#")
			check(name, m.line, file, anchor, m.what)
		}
	}
	slices.Sort(broken)
	return slices.Compact(broken), nil
}

func TestEveryLinkAndAnchorOfTheDocsResolves(t *testing.T) {
	broken, err := unresolved(os.DirFS(moduleRoot))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range broken {
		t.Error(b)
	}
}

func TestBrokenLinksAreFound(t *testing.T) {
	tree := fstest.MapFS{
		"README.md":     {Data: []byte("# A\n[good](docs/a.md#two-words) [code](docs/a.md#keys-limits) [outside](https://example.com/x.md)\n`[no](link.md)`\n```\n[no](link.md)\n```\n")},
		"docs/a.md":     {Data: []byte("# Two words\n## Keys: `limits`\n[gone](b.md) [no anchor](#three) [up](../README.md#a)\n")},
		"x/values.yaml": {Data: []byte("# see docs/a.md, docs/c.md and https://example.com/blob/main/docs/a.md#none\n")},
	}
	got, err := unresolved(tree)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"docs/a.md:3: b.md does not exist",
		"docs/a.md:3: docs/a.md has no heading for #three",
		"x/values.yaml:1: docs/a.md has no heading for #none",
		"x/values.yaml:1: docs/c.md does not exist",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
