package files

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/launch/native"
)

// secret is in every file outside of the root.
const secret = "SECRET-0f3a"

// outside is a directory with secrets next to a root.
type outside struct {
	base, root, out string
	*Server
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	base := realTempDir(t)
	o := &outside{base: base, root: base + "/root", out: base + "/out"}
	for name, content := range map[string]string{
		"out/secret": secret, "out/dir/secret": secret, "root-next/secret": secret, "secret": secret,
		"root/file": "inside", "root/dir/file": "inside", "root/dir/deep/file": "inside",
	} {
		put(t, base+"/"+name, content)
	}
	o.Server = open(t, o.root+":rw")
	return o
}

func (o *outside) link(t *testing.T, target, name string) string {
	t.Helper()
	if err := os.Symlink(target, o.root+"/"+name); err != nil {
		t.Fatal(err)
	}
	return name
}

// snapshot returns the content of everything outside of the root.
func (o *outside) snapshot(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(o.base, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == o.root {
			return filepath.SkipDir
		}
		fmt.Fprintln(&b, path, d.Type())
		if d.Type().IsRegular() {
			fmt.Fprintln(&b, contentOf(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// calls runs every tool on a path, as a source and as a destination, and returns all results. Each call
// must return within a second.
func (o *outside) calls(t *testing.T, path string) string {
	t.Helper()
	var b strings.Builder
	for tool, arguments := range map[string]map[string]any{
		"read": {"path": path}, "read#2": {"path": path, "digest_only": true}, "list": {"path": path, "show_hidden": true},
		"tree": {"path": path, "show_hidden": true}, "glob": {"pattern": "**", "root": path}, "grep": {"pattern": "SECRET", "path": path},
		"info":  {"path": path},
		"write": {"path": path, "content": "x"}, "write#2": {"path": path, "content": "x", "mode": "append", "digest": digest([]byte(secret))},
		"write#3": {"path": path + "/new", "content": "x"},
		"edit":    {"path": path, "old_string": "SECRET", "new_string": "x"}, "copy": {"source": path, "destination": "copied"},
		"copy#2": {"source": "file", "destination": path}, "copy#3": {"source": "file", "destination": path + "/new"},
		"move": {"source": "dir/deep/file", "destination": path}, "move#2": {"source": path + "/secret", "destination": "moved"},
		"delete": {"path": path + "/secret"}, "delete#2": {"path": path + "/dir", "recursive": true}, "create_dir": {"path": path + "/new/er"},
	} {
		name, _, _ := strings.Cut(tool, "#")
		raw, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for _, one := range o.Tools() {
				if one.Name == name {
					if r, err := one.Call(ctx, &native.Call{Arguments: raw}); err == nil {
						fmt.Fprintf(&b, "%s %s\n", tool, r.Body)
					}
				}
			}
		}()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s of %q hangs", tool, path)
		}
		cancel()
		if copied, err := os.ReadFile(o.root + "/copied"); err == nil {
			b.Write(copied)
			os.Remove(o.root + "/copied")
		}
	}
	return b.String()
}

// TestNoToolEscapesItsRoot tries each escape with every tool: results contain no byte from outside,
// and nothing outside changes.
func TestNoToolEscapesItsRoot(t *testing.T) {
	ways := map[string]func(t *testing.T, o *outside) string{
		"dots":                        func(*testing.T, *outside) string { return "../secret" },
		"dots to a directory outside": func(*testing.T, *outside) string { return "../out" },
		"dots from inside":            func(*testing.T, *outside) string { return "dir/../../secret" },
		"more dots than parents":      func(*testing.T, *outside) string { return strings.Repeat("../", 40) + "etc/passwd" },
		"dots and slashes":            func(*testing.T, *outside) string { return "dir//..//..//secret" },
		"dots at the end":             func(*testing.T, *outside) string { return "dir/../.." },
		"dot before dots":             func(*testing.T, *outside) string { return "./.././secret" },
		"absolute":                    func(_ *testing.T, o *outside) string { return o.out + "/secret" },
		"absolute directory":          func(_ *testing.T, o *outside) string { return o.out },
		"absolute with dots":          func(_ *testing.T, o *outside) string { return o.root + "/../secret" },
		"absolute etc":                func(*testing.T, *outside) string { return "/etc/passwd" },
		"root directory":              func(*testing.T, *outside) string { return "/" },
		"two slashes":                 func(*testing.T, *outside) string { return "//etc/passwd" },
		"a sibling whose name starts with the root's": func(_ *testing.T, o *outside) string { return o.root + "-next/secret" },
		"parent of the root":                          func(_ *testing.T, o *outside) string { return o.base },
		"proc self root":                              func(_ *testing.T, o *outside) string { return "/proc/self/root" + o.out + "/secret" },
		"proc self cwd":                               func(*testing.T, *outside) string { return "/proc/self/cwd" },
		"proc environ":                                func(*testing.T, *outside) string { return "/proc/self/environ" },
		"proc fd":                                     func(*testing.T, *outside) string { return "/proc/self/fd/0" },
		"stdin":                                       func(*testing.T, *outside) string { return "/dev/stdin" },
		"a zero byte":                                 func(_ *testing.T, o *outside) string { return "file\x00/../../secret" },
		"a tilde":                                     func(*testing.T, *outside) string { return "~/../secret" },
		"backslashes":                                 func(*testing.T, *outside) string { return `..\secret` },
		"percent":                                     func(*testing.T, *outside) string { return "%2e%2e/secret" },
		"a URL":                                       func(_ *testing.T, o *outside) string { return "file://" + o.out + "/secret" },
		"absolute link":                               func(t *testing.T, o *outside) string { return o.link(t, o.out+"/secret", "l") },
		"relative link":                               func(t *testing.T, o *outside) string { return o.link(t, "../out/secret", "l") },
		"link to a directory":                         func(t *testing.T, o *outside) string { return o.link(t, o.out, "l") },
		"below a linked dir":                          func(t *testing.T, o *outside) string { return o.link(t, "../out", "l") + "/secret" },
		"link to the parent":                          func(t *testing.T, o *outside) string { return o.link(t, "..", "l") },
		"below the parent":                            func(t *testing.T, o *outside) string { return o.link(t, "..", "l") + "/out/secret" },
		"link to the root dir":                        func(t *testing.T, o *outside) string { return o.link(t, "/", "l") },
		"link in a directory":                         func(t *testing.T, o *outside) string { return o.link(t, "../../out/secret", "dir/l") },
		"link to a link":                              func(t *testing.T, o *outside) string { o.link(t, "../out", "a"); return o.link(t, "a/secret", "l") },
		"link with dots inside":                       func(t *testing.T, o *outside) string { return o.link(t, "dir/../../out/secret", "l") },
		"link to proc":                                func(t *testing.T, o *outside) string { return o.link(t, "/proc/self/root"+o.out, "l") },
		"link to proc cwd":                            func(t *testing.T, o *outside) string { return o.link(t, "/proc/self/cwd", "l") },
		"link to a new name":                          func(t *testing.T, o *outside) string { return o.link(t, "../out/new", "l") },
		"a loop of links":                             func(t *testing.T, o *outside) string { o.link(t, "l", "a"); return o.link(t, "a", "l") },
		"hard link": func(t *testing.T, o *outside) string {
			if err := os.Link(o.out+"/secret", o.root+"/l"); err != nil {
				t.Skip(err)
			}
			return "l"
		},
		"link to a hard link": func(t *testing.T, o *outside) string {
			if err := os.Link(o.out+"/secret", o.root+"/h"); err != nil {
				t.Skip(err)
			}
			return o.link(t, "h", "l")
		},
		"FIFO": func(t *testing.T, o *outside) string {
			if err := syscall.Mkfifo(o.root+"/l", 0o600); err != nil {
				t.Skip(err)
			}
			return "l"
		},
		"link to a FIFO": func(t *testing.T, o *outside) string {
			if err := syscall.Mkfifo(o.root+"/f", 0o600); err != nil {
				t.Skip(err)
			}
			return o.link(t, "f", "l")
		},
		"socket": func(t *testing.T, o *outside) string {
			l, err := net.Listen("unix", o.root+"/l")
			if err != nil {
				t.Skip(err)
			}
			t.Cleanup(func() { l.Close() })
			return "l"
		},
		"device": func(t *testing.T, o *outside) string {
			const zero = 1<<8 | 5
			if err := syscall.Mknod(o.root+"/l", syscall.S_IFCHR|0o600, zero); err != nil {
				t.Skip(err)
			}
			return "l"
		},
		"link to a device": func(t *testing.T, o *outside) string { return o.link(t, "/dev/zero", "l") },
	}
	if len(ways) < 40 {
		t.Errorf("only %d ways", len(ways))
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			o := newOutside(t)
			path := way(t, o)
			before := o.snapshot(t)
			if answered := o.calls(t, path); strings.Contains(answered, secret) || strings.Contains(answered, "root:x:") {
				t.Errorf("%q: bytes from outside are answered: %s", path, answered)
			}
			if answered := o.calls(t, "."); strings.Contains(answered, secret) {
				t.Errorf("a search finds bytes from outside: %s", answered)
			}
			if after := o.snapshot(t); after != before {
				t.Errorf("%q: what is outside changed from\n%s\nto\n%s", path, before, after)
			}
		})
	}
}

// TestSymlinkSwappedDuringACallDoesNotEscape continuously switches the target of a link
// between inside and outside.
func TestSymlinkSwappedDuringACallDoesNotEscape(t *testing.T) {
	o := newOutside(t)
	put(t, o.root+"/real/secret", "inside")
	put(t, o.root+"/real/dir/secret", "inside")
	before := o.snapshot(t)
	rounds := 10_000
	if testing.Short() {
		rounds = 1000
	}
	var swaps, stop atomic.Int64
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for n := swaps.Load(); stop.Load() == 0; n = swaps.Add(1) {
			// x always exists and alternates between targets inside and outside.
			if err := os.Symlink([]string{"real", o.out, "../out"}[n%3], o.root+"/next"); err != nil {
				t.Error(err)
				break
			}
			if err := os.Rename(o.root+"/next", o.root+"/x"); err != nil {
				t.Error(err)
				break
			}
		}
	}()
	finish := sync.OnceFunc(func() { stop.Store(1); <-stopped })
	defer finish()
	inside, refused := 0, 0
	for i := 0; i < rounds || swaps.Load() < int64(rounds); i++ {
		if t.Failed() {
			return
		}
		r, err := o.read(t.Context(), nil, readArguments{Path: "x/secret"})
		switch {
		case err != nil:
			refused++
		case r.Content == "inside":
			inside++
		default:
			t.Fatalf("the answer is %q", r.Content)
		}
		if i%50 != 0 {
			continue
		}
		if g, err := o.grep(t.Context(), nil, grepArguments{Pattern: secret, Path: "x"}); err == nil && len(g.Matches) > 0 {
			t.Fatalf("grep finds %v", g.Matches)
		}
		if r, err := o.edit(t.Context(), nil, editArguments{Path: "x/secret", Old: "SECRET", New: "x"}); err == nil {
			t.Fatalf("an edit outside succeeds: %v", r)
		}
		_, _ = o.writeFile(t.Context(), nil, writeArguments{Path: "x/new", Content: "x"})
		_, _ = o.remove(t.Context(), nil, deleteArguments{Path: "x/new"})
		_, _ = o.copyFile(t.Context(), nil, fromTo{"file", fmt.Sprintf("x/copy%d", i)})
	}
	finish()
	if after := o.snapshot(t); after != before {
		t.Errorf("what is outside changed from\n%s\nto\n%s", before, after)
	}
	t.Logf("%d swaps; %d reads inside, %d refused", swaps.Load(), inside, refused)
}
