package dirstate

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// tree creates a directory with the files.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func digest(t *testing.T, dir string) string {
	t.Helper()
	sum, err := Digest(dir)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestCopiedAndSharedDirectoriesKeepTheirDigest(t *testing.T) {
	from, to := tree(t, map[string]string{"a": "1", "sub/b": "2", "run": "#!"}), t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Join(from, "run"), 0o700), os.Symlink("/etc/passwd", filepath.Join(from, "link")), Copy(from, to)); err != nil {
		t.Fatal(err)
	}
	want := digest(t, from)
	if got := digest(t, to); got != want {
		t.Errorf("the copy has the digest %s, want %s", got, want)
	}
	if err := Share(to); err != nil {
		t.Fatal(err)
	}
	if got := digest(t, to); got != want {
		t.Errorf("shared it has the digest %s, want %s", got, want)
	}
	for name, mode := range map[string]fs.FileMode{".": 0o777, "sub": 0o777, "sub/b": 0o666, "run": 0o766} {
		if info, err := os.Stat(filepath.Join(to, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has the mode %v, want %v (%v)", name, info.Mode().Perm(), mode, err)
		}
	}
	if err := os.WriteFile(filepath.Join(to, "a"), []byte("3"), 0o600); err != nil {
		t.Fatal(err)
	}
	if digest(t, to) == want {
		t.Error("another content has the same digest")
	}
}

func TestPipesAndOversizedDirectoriesAreRefused(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Digest(dir); !errors.Is(err, errKind) {
		t.Errorf("a pipe is read: %v", err)
	}
	large := tree(t, map[string]string{"large": ""})
	if err := os.Truncate(filepath.Join(large, "large"), MaxBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Digest(large); !errors.Is(err, errLarge) {
		t.Errorf("reading too much: %v", err)
	}
	if err := Copy(large, t.TempDir()); !errors.Is(err, errLarge) {
		t.Errorf("copying too much: %v", err)
	}
}

// A program that runs in the directory replaces a part of the path between the check of a file
// and its reading.
func TestSymlinkSwappedInDuringWalkDoesNotEscape(t *testing.T) {
	outside, dir := tree(t, map[string]string{"file": "secret"}), tree(t, map[string]string{"sub/file": "own"})
	opened := false
	err := walk(dir, func(root *os.Root, rel string, info fs.FileInfo) error {
		if rel != filepath.Join("sub", "file") {
			return nil
		}
		sub := filepath.Join(dir, "sub")
		if err := errors.Join(os.Rename(sub, filepath.Join(dir, "moved")), os.Symlink(outside, sub)); err != nil {
			t.Fatal(err)
		}
		opened = true
		f, err := open(root, rel)
		if err == nil {
			f.Close()
			t.Error("the file outside was opened")
		}
		return nil
	})
	if err != nil || !opened {
		t.Fatalf("the walk: %v, opened %v", err, opened)
	}
}

// A program may create more files than can be read in a minute, in one directory or in many.
func TestMoreFilesThanAllowedAreRefusedBeforeAllAreRead(t *testing.T) {
	w := walker{left: 3, each: func(*os.Root, string, fs.FileInfo) error { return nil }}
	for name, files := range map[string]map[string]string{
		"in one":   {"a": "", "b": "", "c": "", "d": ""},
		"in three": {"x/a": "", "y/b": ""},
	} {
		root, err := os.OpenRoot(tree(t, files))
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		w.root, w.left = root, 3
		if err := w.visit(".", 0); !errors.Is(err, errMany) || !errors.Is(err, ErrUnusable) {
			t.Errorf("%s: %v", name, err)
		}
		if w.left != -1 {
			t.Errorf("%s: %d names more than the limit were read, want 1", name, -w.left)
		}
		if w.left = 4; w.visit(".", 0) != nil {
			t.Errorf("%s: as many as allowed are refused", name)
		}
	}
}

func TestTooDeeplyNestedDirectoriesAreRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", MaxDepth)), 0o700); err != nil {
		t.Fatal(err)
	}
	digest(t, dir)
	if err := os.Mkdir(filepath.Join(dir, strings.Repeat("d/", MaxDepth), "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Digest(dir); !errors.Is(err, errDeep) || Reason(err) != errDeep.Error() {
		t.Errorf("one more: %v", err)
	}
}

// Errors caused by the owner of a directory are distinguished from errors of the machine.
func TestDirectoryFaultsAreDistinguishedFromMachineErrors(t *testing.T) {
	for number, own := range map[unix.Errno]bool{unix.EACCES: true, unix.ELOOP: true, unix.ENOENT: true, unix.EIO: false, unix.EMFILE: false} {
		err := asUnusable(&fs.PathError{Op: "open", Path: "secret-name", Err: number})
		if errors.Is(err, ErrUnusable) != own {
			t.Errorf("%v is blamed on the directory: %v", number, !own)
		}
		if own && strings.Contains(Reason(err), "secret-name") {
			t.Errorf("the reason has the name of a file: %s", Reason(err))
		}
	}
	if _, err := Digest(filepath.Join(t.TempDir(), "gone")); !errors.Is(err, ErrUnusable) {
		t.Errorf("a directory that its program removed: %v", err)
	}
	if os.Getuid() == 0 {
		return // root may read everything
	}
	dir := tree(t, map[string]string{"sub/file": "x"})
	if err := os.Chmod(filepath.Join(dir, "sub"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Digest(dir); !errors.Is(err, ErrUnusable) {
		t.Errorf("a directory that nobody may read: %v", err)
	}
	if err := Remove(dir); err != nil {
		t.Errorf("removing it: %v", err)
	}
}
