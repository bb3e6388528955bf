package housetest

import (
	"crypto/sha256"
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
	// mention matches a docs page named outside of Markdown: in comments, errors, charts and alerts.
	mention = regexp.MustCompile(`(?:^|[^\w/.-]|/main/|\.\./)(docs/[\w./-]+\.md)(#[\w-]+)?`)
)

// page holds the anchors and links of a Markdown file.
type page struct {
	anchors map[string]bool
	links   []reference
}

// parsePage finds the headings and links of a Markdown file as GitHub does, ignoring fenced
// blocks.
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

// slug returns GitHub's anchor for a heading.
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

// unresolved returns the broken relative links and anchors of all Markdown files, and the missing
// docs pages that other files name.
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

// TestEveryDrawingIsUpToDateWithItsSource fails if the digest in an SVG is not that of its source.
func TestEveryDrawingIsUpToDateWithItsSource(t *testing.T) {
	docs := os.DirFS(moduleRoot + "/docs")
	sources, err := fs.Glob(docs, "diagrams/*.dot")
	if err != nil || len(sources) == 0 {
		t.Fatalf("found no sources of drawings: %v", err)
	}
	for _, name := range sources {
		source, err := fs.ReadFile(docs, name)
		if err != nil {
			t.Fatal(err)
		}
		drawing := "images/" + strings.TrimSuffix(path.Base(name), ".dot") + ".svg"
		svg, err := fs.ReadFile(docs, drawing)
		if err != nil {
			t.Errorf("docs/%s has no drawing: run make diagrams", name)
			continue
		}
		if !strings.Contains(string(svg), fmt.Sprintf("sha256:%x", sha256.Sum256(source))) {
			t.Errorf("docs/%s was not made from the current docs/%s: run make diagrams", drawing, name)
		}
	}
	drawings, err := fs.Glob(docs, "images/*.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, drawing := range drawings {
		if source := "diagrams/" + strings.TrimSuffix(path.Base(drawing), ".svg") + ".dot"; !slices.Contains(sources, source) {
			t.Errorf("docs/%s has no source docs/%s", drawing, source)
		}
	}
}

// TestDocsIndexLinksEachQuestionToOnePage fails if a question in the index does not link to
// exactly one page, or if the index does not link to a page. Another test checks the links.
func TestDocsIndexLinksEachQuestionToOnePage(t *testing.T) {
	index, err := os.ReadFile(moduleRoot + "/docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	questions := 0
	for line := range strings.Lines(string(index)) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || !strings.ContainsAny(cells[1], "?") {
			continue
		}
		questions++
		if len(link.FindAllString(cells[2], -1)) != 1 {
			t.Errorf("a question in docs/README.md must link to exactly one page: %s", line)
		}
	}
	if questions < 20 {
		t.Errorf("docs/README.md answers %d questions, want at least 20", questions)
	}
	linked := map[string]bool{"README.md": true}
	for _, l := range parsePage(string(index)).links {
		file, _, _ := strings.Cut(l.what, "#")
		linked[file] = true
	}
	err = fs.WalkDir(os.DirFS(moduleRoot+"/docs"), ".", func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && name == "adr" {
			return fs.SkipDir
		}
		if path.Ext(name) == ".md" && !linked[name] {
			t.Errorf("docs/README.md has no link to docs/%s", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEachHowToBeginsWithItsCommand fails if a how-to page has no shell block directly below its
// title.
func TestEachHowToBeginsWithItsCommand(t *testing.T) {
	pages, err := fs.Glob(os.DirFS(moduleRoot), "docs/how-to/*.md")
	if err != nil || len(pages) < 30 {
		t.Fatalf("found %d how-to pages: %v", len(pages), err)
	}
	begins := regexp.MustCompile("^# [^\n]+\n\n(<!-- run( background)? -->\n)?```sh\n")
	for _, name := range pages {
		text, err := os.ReadFile(path.Join(moduleRoot, name))
		if err != nil {
			t.Fatal(err)
		}
		if !begins.Match(text) {
			t.Errorf("%s does not begin with a sh block directly below its title", name)
		}
	}
}

// TestTroubleshootingMatchesLogsMetricsAndAlerts fails if the page quotes a log line that no code writes, names a
// metric that does not exist, or lacks an alert.
func TestTroubleshootingMatchesLogsMetricsAndAlerts(t *testing.T) {
	text := func(name string) string {
		raw, err := os.ReadFile(moduleRoot + "/docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	page := text("troubleshooting.md")
	units, err := load(os.DirFS(moduleRoot))
	if err != nil {
		t.Fatal(err)
	}
	written := func(line string) bool {
		return slices.ContainsFunc(units, func(u *unit) bool {
			return slices.ContainsFunc(u.files, func(f file) bool {
				return !f.test && slices.ContainsFunc(f.literals, func(l reference) bool { return strings.Contains(l.what, line) })
			})
		})
	}
	first := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
	section := func(title string) string {
		_, rest, _ := strings.Cut(page, "\n## "+title+"\n")
		rest, _, _ = strings.Cut(rest, "\n## ")
		return rest
	}
	lines := first.FindAllStringSubmatch(section("Log lines"), -1)
	if len(lines) < 10 {
		t.Errorf("found only %d log lines in docs/troubleshooting.md", len(lines))
	}
	for _, m := range lines {
		if m[1] != "not_in_channel" && !written(m[1]) { // from Slack
			t.Errorf("docs/troubleshooting.md quotes the log line %q, which no code writes", m[1])
		}
	}
	metrics := text("reference/metrics.md")
	for _, m := range first.FindAllStringSubmatch(section("Metrics"), -1) {
		name, _, _ := strings.Cut(m[1], "{")
		if !strings.Contains(metrics, "| `"+name+"` |") {
			t.Errorf("docs/troubleshooting.md names the metric %s, which is not in docs/reference/metrics.md", name)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^## (Callyard\w+)$`).FindAllStringSubmatch(text("reference/alerts.md"), -1) {
		if !strings.Contains(page, "reference/alerts.md#"+strings.ToLower(m[1])+")") {
			t.Errorf("docs/troubleshooting.md has no row for the alert %s", m[1])
		}
	}
}
