//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package batchfile

import "os"

// lock does nothing: see the package comment.
func lock(*os.File) error { return nil }

// syncFolder does nothing: not every system lets a folder be synced.
func syncFolder(string) error { return nil }
