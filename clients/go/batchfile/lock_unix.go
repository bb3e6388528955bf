//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package batchfile

import (
	"errors"
	"os"
	"syscall"
)

// lock locks the file for this process. It fails at once if another process holds the lock.
// The lock ends when the file is closed.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// syncFolder makes a rename survive a power failure.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
