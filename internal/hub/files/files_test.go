package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a writable root with an open server.
func fixture(t *testing.T, files map[string]string) (*Server, string) {
	t.Helper()
	dir := realTempDir(t)
	for name, content := range files {
		put(t, filepath.Join(dir, name), content)
	}
	return open(t, dir+":rw"), dir
}

// realTempDir has no symbolic links in its path.
func realTempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t *testing.T, roots ...string) *Server {
	t.Helper()
	s, err := Open(roots)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %q", err, want)
	}
}

func TestReadReturnsLinesAndTheDigestOfTheWholeFile(t *testing.T) {
	s, dir := fixture(t, map[string]string{"a/b.txt": "one\ntwo\nthree", "empty": "", "binary": "a\x00b"})
	r, err := s.read(t.Context(), nil, readArguments{Path: "a/b.txt"})
	if err != nil || r.Content != "one\ntwo\nthree" || r.TotalLines != 3 || r.NextOffset != 0 || r.Digest != digest([]byte("one\ntwo\nthree")) || r.Path != dir+"/a/b.txt" {
		t.Errorf("%+v, %v", r, err)
	}
	part, err := s.read(t.Context(), nil, readArguments{Path: dir + "/a/b.txt", Offset: 2, Limit: 1})
	if err != nil || part.Content != "two\n" || part.FirstLine != 2 || part.LineCount != 1 || part.NextOffset != 3 || part.Digest != r.Digest || part.TotalLines != 3 {
		t.Errorf("%+v, %v", part, err)
	}
	if r, err := s.read(t.Context(), nil, readArguments{Path: "empty"}); err != nil || r.Content != "" || r.TotalLines != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := s.read(t.Context(), nil, readArguments{Path: "binary", DigestOnly: true}); err != nil || r.Digest != digest([]byte("a\x00b")) || r.Size != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	for want, in := range map[string]readArguments{
		"is not UTF-8 text":                {Path: "binary"},
		"there is no file or directory":    {Path: "a/c"},
		"is a directory; call list":        {Path: "a"},
		"has 3 lines, and offset is 4":     {Path: "a/b.txt", Offset: 4},
		"offset is the number of a line":   {Path: "a/b.txt", Offset: -1},
		"is outside the allowed":           {Path: "/etc/passwd"},
		"has 5000 bytes; at most 4096":     {Path: strings.Repeat("x", 5000)},
		"the path has a zero byte":         {Path: "a\x00b"},
		"is more than 64 directories deep": {Path: strings.Repeat("x/", 65) + "x"},
		"file name too long":               {Path: strings.Repeat("x", 300)},
		"not a directory":                  {Path: "a/b.txt/c"},
		"outside the allowed ":             {Path: "../" + filepath.Base(dir) + "x/b"},
	} {
		_, err := s.read(t.Context(), nil, in)
		wantError(t, err, want)
	}
}

func TestReadIsBounded(t *testing.T) {
	s, _ := fixture(t, map[string]string{
		"lines": strings.Repeat("line\n", 5000), "wide": strings.Repeat(strings.Repeat("x", 1000)+"\n", 1000),
		"long": strings.Repeat("x", maxOutput+1), "large": strings.Repeat("x", maxFile+1), "fits": strings.Repeat("x\n", maxFile/2),
	})
	r, err := s.read(t.Context(), nil, readArguments{Path: "lines", Limit: 1_000_000})
	if err != nil || r.LineCount != maxLines || r.NextOffset != maxLines+1 || r.TotalLines != 5000 {
		t.Errorf("%d lines of %d, next %d, %v", r.LineCount, r.TotalLines, r.NextOffset, err)
	}
	if r, err := s.read(t.Context(), nil, readArguments{Path: "wide"}); err != nil || len(r.Content) > maxOutput || r.NextOffset != r.LineCount+1 {
		t.Errorf("%d bytes, next %d after %d, %v", len(r.Content), r.NextOffset, r.LineCount, err)
	}
	if _, err := s.read(t.Context(), nil, readArguments{Path: "fits"}); err != nil {
		t.Error(err)
	}
	_, err = s.read(t.Context(), nil, readArguments{Path: "long"})
	wantError(t, err, "lines of at most")
	_, err = s.read(t.Context(), nil, readArguments{Path: "large"})
	wantError(t, err, "files of at most")
}

func TestWriteNeedsTheDigestOfWhatItReplaces(t *testing.T) {
	s, dir := fixture(t, map[string]string{"a": "old"})
	if err := os.Chmod(dir+"/a", 0o750); err != nil {
		t.Fatal(err)
	}
	_, err := s.writeFile(t.Context(), nil, writeArguments{Path: "a", Content: "new"})
	wantError(t, err, "exists; read it and give its digest")
	_, err = s.writeFile(t.Context(), nil, writeArguments{Path: "a", Content: "new", Digest: digest([]byte("other"))})
	wantError(t, err, "has changed since the digest was taken")
	if contentOf(t, dir+"/a") != "old" {
		t.Error("the file was changed")
	}
	r, err := s.writeFile(t.Context(), nil, writeArguments{Path: "a", Content: "new", Digest: digest([]byte("old"))})
	if err != nil || contentOf(t, dir+"/a") != "new" {
		t.Error(err)
	}
	if r, err = s.writeFile(t.Context(), nil, writeArguments{Path: "a", Content: "er", Digest: r.Digest, Mode: "append"}); err != nil || contentOf(t, dir+"/a") != "newer" || r.Size != 5 {
		t.Error(r, err)
	}
	if info, err := os.Stat(dir + "/a"); err != nil || info.Mode().Perm() != 0o750 {
		t.Error("the permissions are lost", info.Mode(), err)
	}
	if _, err := s.writeFile(t.Context(), nil, writeArguments{Path: "b", Content: "x"}); err != nil || contentOf(t, dir+"/b") != "x" {
		t.Error(err)
	}
	_, err = s.writeFile(t.Context(), nil, writeArguments{Path: "c", Content: "x", Digest: r.Digest})
	wantError(t, err, "there is no file")
	_, err = s.writeFile(t.Context(), nil, writeArguments{Path: "no/c", Content: "x"})
	wantError(t, err, "there is no file or directory")
	_, err = s.writeFile(t.Context(), nil, writeArguments{Path: "c", Content: strings.Repeat("x", maxFile+1)})
	wantError(t, err, "files of at most")
	_, err = s.writeFile(t.Context(), nil, writeArguments{Path: "c", Mode: "truncate"})
	wantError(t, err, "use overwrite or append")
	_, err = s.writeFile(t.Context(), nil, writeArguments{Path: "."})
	wantError(t, err, "is a root and cannot be changed")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

func TestConcurrentWritesLoseNothing(t *testing.T) {
	s, dir := fixture(t, map[string]string{"n": ""})
	const writers, each = 8, 10
	errs := make(chan error, writers)
	for range writers {
		go func() {
			for done := 0; done < each; {
				r, err := s.read(t.Context(), nil, readArguments{Path: "n"})
				if err != nil {
					errs <- err
					return
				}
				if _, err := s.writeFile(t.Context(), nil, writeArguments{Path: "n", Content: r.Content + "x", Digest: r.Digest}); err == nil {
					done++
				} else if !strings.Contains(err.Error(), "has changed") {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range writers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := len(contentOf(t, dir+"/n")); n != writers*each {
		t.Errorf("%d of %d writes are there", n, writers*each)
	}
}

func TestEditReplacesOneExactText(t *testing.T) {
	s, dir := fixture(t, map[string]string{"a": "one two\nthree two\n", "crlf": "a\r\nb\r\nc\r\n", "binary": "a\x00"})
	r, err := s.edit(t.Context(), nil, editArguments{Path: "a", Old: "one two", New: "1 2"})
	if err != nil || r.Replacements != 1 || contentOf(t, dir+"/a") != "1 2\nthree two\n" || r.Digest != digest([]byte("1 2\nthree two\n")) {
		t.Error(r, err)
	}
	if r, err := s.edit(t.Context(), nil, editArguments{Path: "crlf", Old: "a\nb", New: "x\ny\nz", Digest: digest([]byte("a\r\nb\r\nc\r\n"))}); err != nil || contentOf(t, dir+"/crlf") != "x\r\ny\r\nz\r\nc\r\n" {
		t.Error(r, err)
	}
	if r, err := s.edit(t.Context(), nil, editArguments{Path: "a", Old: "t", New: "T", ReplaceAll: true}); err != nil || r.Replacements != 2 || contentOf(t, dir+"/a") != "1 2\nThree Two\n" {
		t.Error(r, err)
	}
	for want, in := range map[string]editArguments{
		"old_string is not in":             {Path: "a", Old: "four", New: "4"},
		"3 times, first in the lines 2, 2": {Path: "a", Old: "e", New: "E"},
		"old_string is empty":              {Path: "a", New: "x"},
		"are equal":                        {Path: "a", Old: "x", New: "x"},
		"has changed since":                {Path: "a", Old: "1", New: "2", Digest: "00"},
		"is not UTF-8 text":                {Path: "binary", Old: "a", New: "b"},
		"there is no file":                 {Path: "b", Old: "a", New: "b"},
	} {
		if strings.HasPrefix(want, "3 times") {
			put(t, dir+"/a", "1\ne e\ne\n")
		}
		_, err := s.edit(t.Context(), nil, in)
		wantError(t, err, want)
	}
	put(t, dir+"/a", strings.Repeat("x", 1<<20))
	_, err = s.edit(t.Context(), nil, editArguments{Path: "a", Old: "x", New: strings.Repeat("y", 1<<20), ReplaceAll: true})
	wantError(t, err, "files of at most")
}

func TestListTreeGlobGrepAndInfoDescribeADirectory(t *testing.T) {
	s, dir := fixture(t, map[string]string{
		"src/main.go": "package main\n\nfunc main() {}\n", "src/deep/util.go": "package deep\nfunc Util() {}\n", "src/deep/data.bin": "func\x00",
		".hidden/x.go": "func hidden() {}", "README.md": "# func\n",
	})
	if err := os.Symlink("src", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	l, err := s.list(t.Context(), nil, listArguments{})
	if err != nil || fmt.Sprint(names(l)) != "[README.md link src]" || l.Entries[1].Type != "symlink" || l.Entries[2].Type != "directory" || l.Entries[0].Size != 7 {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err := s.list(t.Context(), nil, listArguments{Path: "link/deep"}); err != nil || fmt.Sprint(names(l)) != "[data.bin util.go]" {
		t.Errorf("through a link inside: %+v, %v", l, err)
	}
	if l, err := s.list(t.Context(), nil, listArguments{Hidden: true}); err != nil || len(l.Entries) != 4 {
		t.Errorf("%+v, %v", l, err)
	}
	tree, err := s.tree(t.Context(), nil, treeArguments{Pattern: "*.go"})
	if want := filepath.Base(dir) + "/\n└── src/\n    ├── deep/\n    │   └── util.go\n    └── main.go"; err != nil || tree != want {
		t.Errorf("%s\n%v", tree, err)
	}
	if tree, err := s.tree(t.Context(), nil, treeArguments{Depth: 1}); err != nil || tree != filepath.Base(dir)+"/\n├── src/\n├── README.md\n└── link@" {
		t.Errorf("%s\n%v", tree, err)
	}
	for pattern, want := range map[string]string{
		"**/*.go": "[.hidden/x.go src/deep/util.go src/main.go]", "*.md": "[README.md]", "src/*": "[src/main.go]", "src/**": "[src/deep/data.bin src/deep/util.go src/main.go]",
		"**": "[.hidden/x.go README.md link src/deep/data.bin src/deep/util.go src/main.go]", "**/deep/**/*.go": "[src/deep/util.go]", "nothing": "[]",
	} {
		g, err := s.glob(t.Context(), nil, globArguments{Pattern: pattern})
		if err != nil || fmt.Sprint(sorted(g.Files)) != want {
			t.Errorf("%s: %v, %v", pattern, g.Files, err)
		}
	}
	if g, err := s.glob(t.Context(), nil, globArguments{Pattern: "*.go", Root: dir + "/src/deep"}); err != nil || fmt.Sprint(g.Files) != "[util.go]" {
		t.Error(g, err)
	}
	for _, pattern := range []string{"", "/etc/*", "../*", "[", strings.Repeat("*", 2000), strings.Repeat("**/", 100)} {
		if _, err := s.glob(t.Context(), nil, globArguments{Pattern: pattern}); err == nil {
			t.Errorf("%.20q is taken", pattern)
		}
	}
	g, err := s.grep(t.Context(), nil, grepArguments{Pattern: `^func \w+`, FilePattern: "*.go", Path: "src"})
	if err != nil || fmt.Sprint(g.Matches) != "[{deep/util.go 2 func Util() {}} {main.go 3 func main() {}}]" {
		t.Errorf("%+v, %v", g, err)
	}
	if g, err := s.grep(t.Context(), nil, grepArguments{Pattern: `func`, Max: 2}); err != nil || len(g.Matches) != 2 || !g.Truncated {
		t.Errorf("%+v, %v", g, err)
	}
	if g, err := s.grep(t.Context(), nil, grepArguments{Pattern: `func`, Path: "src/deep"}); err != nil || len(g.Matches) != 1 || g.Skipped != 1 {
		t.Errorf("%+v, %v", g, err)
	}
	if g, err := s.grep(t.Context(), nil, grepArguments{Pattern: `main`, Path: "src/main.go"}); err != nil || len(g.Matches) != 2 || g.Matches[0].File != "main.go" {
		t.Errorf("%+v, %v", g, err)
	}
	_, err = s.grep(t.Context(), nil, grepArguments{Pattern: `(`})
	wantError(t, err, "not a regular expression in RE2 syntax")
	i, err := s.info(t.Context(), nil, infoArguments{Path: "src/main.go"})
	if err != nil || !i.Exists || i.Type != "file" || i.Permissions != "rw-r--r--" || i.Links != 1 || !i.Writable || i.Modified == "" {
		t.Errorf("%+v, %v", i, err)
	}
	if i, err := s.info(t.Context(), nil, infoArguments{Path: "none"}); err != nil || i.Exists {
		t.Errorf("%+v, %v", i, err)
	}
}

func names(l listResult) (out []string) {
	for _, e := range l.Entries {
		out = append(out, e.Name)
	}
	return out
}

func sorted(list []string) []string {
	out := append([]string{}, list...)
	for i := range out {
		for j := i; j > 0 && out[j] < out[j-1]; j-- {
			out[j], out[j-1] = out[j-1], out[j]
		}
	}
	return out
}

func TestDirectoriesAreBounded(t *testing.T) {
	s, dir := fixture(t, nil)
	for i := range maxTree + 10 {
		put(t, fmt.Sprintf("%s/d/%d.txt", dir, i), "x\n")
	}
	deep := dir + strings.Repeat("/e", 100)
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if l, err := s.list(t.Context(), nil, listArguments{Path: "d"}); err != nil || len(l.Entries) != maxListed || !l.Truncated {
		t.Errorf("%d entries, %v", len(l.Entries), err)
	}
	if tree, err := s.tree(t.Context(), nil, treeArguments{}); err != nil || strings.Count(tree, "\n") > maxTree+3 || !strings.Contains(tree, "truncated") {
		t.Errorf("%d lines, %v", strings.Count(tree, "\n"), err)
	}
	if g, err := s.glob(t.Context(), nil, globArguments{Pattern: "**/*.txt"}); err != nil || len(g.Files) != maxGlob || !g.Truncated {
		t.Errorf("%d files, %v", len(g.Files), err)
	}
	if g, err := s.grep(t.Context(), nil, grepArguments{Pattern: "x", Max: 1_000_000}); err != nil || len(g.Matches) != maxMatches || !g.Truncated {
		t.Errorf("%d matches, %v", len(g.Matches), err)
	}
}

func TestCopyMoveDeleteAndCreateDirChangeTheRoot(t *testing.T) {
	s, dir := fixture(t, map[string]string{"a": "1", "d/b": "2", "d/e/c": "3"})
	ctx := t.Context()
	if _, err := s.createDir(ctx, nil, createArguments{"x/y"}); err != nil {
		t.Error(err)
	}
	if _, err := s.copyFile(ctx, nil, fromTo{"a", "x/y/a"}); err != nil || contentOf(t, dir+"/x/y/a") != "1" || contentOf(t, dir+"/a") != "1" {
		t.Error(err)
	}
	_, err := s.copyFile(ctx, nil, fromTo{"a", "d/b"})
	wantError(t, err, "exists; delete it first")
	_, err = s.copyFile(ctx, nil, fromTo{"d", "f"})
	wantError(t, err, "is a directory")
	_, err = s.move(ctx, nil, fromTo{"a", "d/b"})
	wantError(t, err, "exists; delete it first")
	if _, err := s.move(ctx, nil, fromTo{"d", "x/d"}); err != nil || contentOf(t, dir+"/x/d/e/c") != "3" {
		t.Error(err)
	}
	_, err = s.move(ctx, nil, fromTo{"x", "x/y/z"})
	if err == nil {
		t.Error("a directory was moved into itself")
	}
	_, err = s.remove(ctx, nil, deleteArguments{Path: "x/d"})
	wantError(t, err, "set recursive")
	if _, err := s.remove(ctx, nil, deleteArguments{Path: "x/d", Recursive: true}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir + "/x/d"); err == nil {
		t.Error("it is not deleted")
	}
	if _, err := s.remove(ctx, nil, deleteArguments{Path: "a"}); err != nil {
		t.Error(err)
	}
	_, err = s.remove(ctx, nil, deleteArguments{Path: "a"})
	wantError(t, err, "there is no file")
	_, err = s.remove(ctx, nil, deleteArguments{Path: dir, Recursive: true})
	wantError(t, err, "is a root")
}

func TestADirectoryWithTooManyEntriesIsNotDeleted(t *testing.T) {
	s, dir := fixture(t, nil)
	if err := os.Mkdir(dir+"/d", 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range maxDelete + 1 {
		if err := os.WriteFile(fmt.Sprintf("%s/d/%d", dir, i), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.remove(t.Context(), nil, deleteArguments{Path: "d", Recursive: true})
	wantError(t, err, "more than 10000 entries")
	if left, _ := os.ReadDir(dir + "/d"); len(left) != maxDelete+1 {
		t.Errorf("%d entries are left", len(left))
	}
}

func TestReadOnlyRootHidesAndRefusesWriteTools(t *testing.T) {
	a, b := realTempDir(t), realTempDir(t)
	put(t, a+"/f", "x")
	only := open(t, a)
	if n := len(only.Tools()); n != 6 {
		t.Errorf("%d tools", n)
	}
	s := open(t, a, b+":rw")
	if n := len(s.Tools()); n != 12 {
		t.Errorf("%d tools", n)
	}
	ctx := t.Context()
	for name, err := range map[string]error{
		"write":      second(s.writeFile(ctx, nil, writeArguments{Path: a + "/n", Content: "x"})),
		"edit":       second(s.edit(ctx, nil, editArguments{Path: a + "/f", Old: "x", New: "y"})),
		"copy":       second(s.copyFile(ctx, nil, fromTo{a + "/f", a + "/g"})),
		"move from":  second(s.move(ctx, nil, fromTo{a + "/f", b + "/f"})),
		"move to":    second(s.move(ctx, nil, fromTo{b + "/f", a + "/g"})),
		"delete":     second(s.remove(ctx, nil, deleteArguments{Path: a + "/f"})),
		"create_dir": second(s.createDir(ctx, nil, createArguments{a + "/d"})),
	} {
		if err == nil || !strings.Contains(err.Error(), "read-only") && name != "move to" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.copyFile(ctx, nil, fromTo{a + "/f", b + "/f"}); err != nil || contentOf(t, b+"/f") != "x" {
		t.Error(err)
	}
	_, err := s.read(ctx, nil, readArguments{Path: "f"})
	wantError(t, err, "is not an absolute path; begin it with one of "+a+" (read only), "+b+" (writable)")
	if l, err := s.list(ctx, nil, listArguments{}); err != nil || fmt.Sprint(names(l)) != fmt.Sprint([]string{a, b}) {
		t.Error(l, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestInvalidRootsAreRefused(t *testing.T) {
	dir := realTempDir(t)
	put(t, dir+"/file", "")
	put(t, dir+"/in/file", "")
	for want, roots := range map[string][]string{
		"is not an absolute path":                  {"srv/data"},
		"no such file or directory; create":        {dir + "/none"},
		"is not a directory":                       {dir + "/file"},
		"is a system directory":                    {"/"},
		"/proc/self/root is a system directory":    {"/proc/self/root"},
		"is given twice":                           {dir, dir + "/:rw"},
		"is inside the writable root " + dir:       {dir + "/in", dir + ":rw"},
		"is inside the writable root " + dir + ",": {dir + ":rw", dir + "/in"},
		"roots is empty":                           nil,
	} {
		_, err := Open(roots)
		wantError(t, err, want)
	}
	s := open(t, dir, dir+"/in:rw")
	if _, err := s.writeFile(t.Context(), nil, writeArguments{Path: dir + "/in/new", Content: "x"}); err != nil {
		t.Error(err)
	}
	if _, err := s.writeFile(t.Context(), nil, writeArguments{Path: dir + "/new", Content: "x"}); err == nil {
		t.Error("a read-only root is written")
	}
}
