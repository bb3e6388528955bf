//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package batchfile

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the file for this process; it fails at once where another one has it. The
// lock ends when the file is closed.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// syncFolder makes a rename survive a power cut.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
