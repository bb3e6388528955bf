//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package batchfile

import "os"

// lock does nothing: see the package comment.
func lock(*os.File) error { return nil }

// syncFolder does nothing, because not every system can sync a directory.
func syncFolder(string) error { return nil }
