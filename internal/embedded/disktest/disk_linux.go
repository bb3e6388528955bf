// Package disktest gives tests a disk that is really full.
//
// It promises that what it mounts is gone when the test has ended. It takes the right to
// mount (root); without it the test is skipped, and says why.
package disktest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Small mounts a file system of the size ("8m") for the time of the test and returns
// its folder.
func Small(t testing.TB, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); errors.Is(err, syscall.EPERM) {
		t.Skip("this test mounts a small file system, which this user may not (root may): ", err)
	} else if err != nil {
		t.Fatalf("mounting a file system of %s: %v", size, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmounting %s: %v", dir, err)
		}
	})
	return dir
}

// Fill takes all the room of the disk of a folder; empty gives it back, once.
func Fill(t testing.TB, dir string) (empty func()) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 64<<10); len(block) > 0; {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	return func() {
		t.Helper()
		if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
			t.Error(err)
		}
	}
}
