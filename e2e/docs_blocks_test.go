package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus/porttest"
)

// A shell block of the documentation is run in one of three ways:
//
//   - The mark <!-- run --> precedes it. It runs unchanged, against a Callyard
//     with the servers of deploy/examples/mcp.json. Use this for a new block.
//   - Its page is in newcomerPages, whose blocks are pasted one after the other.
//   - Its page is in readerPages, which lists the prerequisites of the page: files, processes,
//     and the text that a reader replaces, such as CALL_ID. Marked blocks need no row.
//
// A command that cannot run on the machine of a test is in notRun, with the reason.

// docsPages returns the pages with commands: README.md, CONTRIBUTING.md and those under docs.
func docsPages(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md", "CONTRIBUTING.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(programs.root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			short, err := filepath.Rel(programs.root, name)
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, filepath.ToSlash(short))
		}
	}
	return pages
}

// fence matches the beginning of a code block: its indent and its language.
var fence = regexp.MustCompile("^( *)```(\\w*)$")

// unmarked returns the shell blocks of a page without a mark. A block in
// another shell language is an error, because no test looks for it.
func unmarked(name, document string) (found []block, err error) {
	lines := strings.Split(document, "\n")
	for i := 0; i < len(lines); i++ {
		begin := fence.FindStringSubmatch(lines[i])
		if begin == nil {
			continue
		}
		b := block{where: fmt.Sprintf("%s:%d", name, i+1)}
		mark := ""
		if i > 0 {
			mark = strings.TrimSpace(lines[i-1])
		}
		var text strings.Builder
		for i++; i < len(lines) && lines[i] != begin[1]+"```"; i++ {
			text.WriteString(strings.TrimPrefix(lines[i], begin[1]) + "\n")
		}
		b.text = text.String()
		switch {
		case slices.Contains([]string{"bash", "shell", "console", "zsh"}, begin[2]):
			return nil, fmt.Errorf("%s: write ```sh in place of ```%s, so that the block is run", b.where, begin[2])
		case begin[2] == "sh" && mark != runMark && mark != backgroundMark:
			found = append(found, b)
		}
	}
	return found, nil
}

// TestEveryShellBlockOfTheDocsIsRun runs the blocks of the pages in readerPages, and fails
// if a page has a block that no test runs.
func TestEveryShellBlockOfTheDocsIsRun(t *testing.T) {
	used := make([]bool, len(notRun))
	rows := map[string]*readerPage{}
	for i := range readerPages {
		rows[readerPages[i].name] = &readerPages[i]
	}
	for _, name := range docsPages(t) {
		document, err := os.ReadFile(filepath.Join(programs.root, name))
		if err != nil {
			t.Fatal(err)
		}
		found, err := unmarked(name, string(document))
		if err != nil {
			t.Error(err)
		}
		row := rows[name]
		delete(rows, name)
		for i := range found {
			found[i].text = runnable(found[i].text, used)
		}
		if slices.ContainsFunc(newcomerPages, func(p tutorialPage) bool { return p.name == name }) {
			continue // TestReadmeCommandsWorkInOrder requires a row for each
		}
		found = slices.DeleteFunc(found, func(b block) bool { return strings.TrimSpace(b.text) == "" })
		if row == nil {
			row = &readerPage{name: name}
		}
		missing := false
		for i, b := range found {
			if i >= len(row.blocks) || !strings.Contains(b.text, row.blocks[i].block) {
				t.Errorf("%s: nothing runs this block. Put %s on the line before it, or a row into readerPages of docs_pages_test.go:\n%s", b.where, runMark, b.text)
				missing = true
			}
		}
		if missing {
			continue
		}
		if len(found) < len(row.blocks) {
			t.Fatalf("%s has %d blocks, and readerPages knows %d", name, len(found), len(row.blocks))
		}
		if len(found) > 0 {
			t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
				t.Parallel()
				newReader(t).reads(row, found)
			})
		}
	}
	for name := range rows {
		t.Errorf("readerPages has %s, which does not exist", name)
	}
	for i, row := range notRun {
		if !used[i] {
			t.Errorf("no page has the command %q: remove it from notRun", row.command)
		}
		if row.by == "" {
			continue
		}
		file, text, _ := strings.Cut(row.by, ": ")
		source, err := os.ReadFile(filepath.Join(programs.root, file))
		if err != nil || !strings.Contains(string(source), text) {
			t.Errorf("%q is run by %s, which does not exist", row.command, row.by)
		}
	}
}

// runnable returns the commands of a block that can run here, and marks the rows of notRun
// that it used.
func runnable(text string, used []bool) string {
	var out strings.Builder
	text = strings.ReplaceAll(text, " && ", "\n") // each must succeed anyway
	dropped := false
	for line := range strings.Lines(text) {
		if !dropped {
			i := slices.IndexFunc(notRun, func(r notRunRow) bool { return strings.HasPrefix(line, r.command) })
			if i >= 0 {
				used[i] = true
				if dropped = notRun[i].instead == ""; !dropped {
					line = notRun[i].instead + strings.TrimPrefix(line, notRun[i].command)
				}
			}
		}
		if !dropped {
			out.WriteString(line)
		}
		dropped = dropped && strings.HasSuffix(line, "\\\n")
	}
	return out.String()
}

func TestUntestedDocsBlocksAreReported(t *testing.T) {
	page := "```text\nno\n```\n" + runMark + "\n```sh\nmarked\n```\n1. a\n\n   ```sh\n   indented\n     more\n   ```\n```sh\nlast\n```\n"
	got, err := unmarked("x.md", page)
	if want := []block{{where: "x.md:10", text: "indented\n  more\n"}, {where: "x.md:14", text: "last\n"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := unmarked("x.md", "```bash\nx\n```\n"); err == nil || !strings.Contains(err.Error(), "x.md:1") {
		t.Errorf("a block of bash: %v", err)
	}
	used := make([]bool, len(notRun))
	if got := runnable("cosign verify-blob x \\\n  --more\nls && make bench\n", used); got != "ls\nmake --dry-run bench\n" {
		t.Errorf("%q", got)
	}
}

// readerPage is a page whose blocks a reader pastes into one shell, in order.
type readerPage struct {
	name   string
	given  func(r *reader) // sets up the prerequisites of the page
	blocks []readerBlock
}

// readerBlock is a block of a page, identified by a part of its text.
type readerBlock struct {
	block         string
	serves        bool // it runs until Ctrl-C, in a separate terminal
	prepare       func(r *reader)
	before, after string   // shell text around it: earlier events, and checks that it worked
	replace       []string // pairs of text of the page and its replacement
	want          []string // patterns in the output
}

// reader has a folder, separate addresses, and a terminal.
type reader struct {
	t              *testing.T
	dir            string
	door, approver string // addresses
	env            []string
	replace        []string // in each block of the page
	terminal       *shell
	serving        *served
}

func newReader(t *testing.T) *reader {
	t.Helper()
	r := &reader{t: t, dir: t.TempDir(), door: porttest.Address(t), approver: porttest.Address(t)}
	r.env = append(cleanEnviron(), quickStop, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1", "HOME="+r.dir,
		"CALLYARD_FRONT_DOOR_LISTEN="+r.door, "CALLYARD_APPROVER_LISTEN="+r.approver,
		"CALLYARD_URL=http://"+r.door, "URL=http://"+r.door, "CALLYARD_APPROVER_URL=http://"+r.approver,
		"PATH="+strings.Join([]string{bin(t), programs.test, os.Getenv("PATH")}, string(os.PathListSeparator)))
	// Otherwise the go command leaves a process behind that writes into this folder while it is removed.
	r.has(".config/go/telemetry/mode", "off")
	r.replace = []string{
		"http://127.0.0.1:8080", "http://" + r.door,
		"https://callyard.example.com", "http://" + r.door,
		"https://approve.example.com", "http://" + r.approver,
	}
	return r
}

// set sets a variable in the reader's terminals.
func (r *reader) set(name, value string) { r.env = append(r.env, name+"="+value) }

// has writes a file into the reader's folder.
func (r *reader) has(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	write(r.t, path, text)
}

// up starts `callyard up` at the reader's addresses, in the reader's folder.
func (r *reader) up(flags ...string) *door {
	r.t.Helper()
	return startUp(r.t, setup{dir: r.dir, listen: r.door, env: r.env, flags: flags})
}

// reads pastes the blocks of a page.
func (r *reader) reads(page *readerPage, blocks []block) {
	r.t.Helper()
	if page.given != nil {
		page.given(r)
	}
	for i, b := range blocks {
		want := page.blocks[i]
		if want.prepare != nil {
			want.prepare(r)
		}
		text := strings.NewReplacer(append(want.replace, r.replace...)...).Replace(b.text)
		out := ""
		if want.serves {
			if r.serving != nil {
				r.serving.interrupt(r.t)
			}
			if want.before != "" {
				text = want.before + "\n" + text
			}
			r.serving = serve(r.t, r.dir, r.env, text, want.want)
			out = r.serving.out.String()
			if want.after != "" {
				out += r.paste(want.after)
			}
		} else {
			out = r.paste(want.before + "\n" + text + "\n" + want.after)
		}
		r.t.Logf("%s\n%s%s", b.where, text, out)
		for _, pattern := range want.want {
			if !regexp.MustCompile(pattern).MatchString(out) {
				r.t.Errorf("%s does not print %q:\n%s\n%s", b.where, pattern, text, out)
			}
		}
	}
	if r.serving != nil {
		r.serving.interrupt(r.t)
	}
}

func (r *reader) paste(text string) string {
	r.t.Helper()
	if r.terminal == nil {
		r.terminal = openShell(r.t, r.dir, r.env)
		r.terminal.patience = 30 * time.Second
	}
	return r.terminal.paste(r.t, text)
}
