package reload

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// Stamp identifies the contents of files, or contains the reason why they cannot be read. Equal
// contents have equal stamps, regardless of times and inodes.
type Stamp string

// StampOf reads the files, following symbolic links.
func StampOf(files ...string) Stamp {
	var all Stamp
	for _, file := range files {
		s, _ := readStamp(file)
		all += s + "\n"
	}
	return all
}

// unreadable is the prefix of the stamp of an unreadable file. No digest has this prefix.
const unreadable = "unreadable: "

func readStamp(path string) (Stamp, fs.FileInfo) {
	f, err := os.Open(path)
	if err != nil {
		return failedStamp(err), nil
	}
	defer func() { _ = f.Close() }() // opened for reading only
	info, err := f.Stat()
	if err != nil {
		return failedStamp(err), nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return failedStamp(err), nil
	}
	return Stamp(hex.EncodeToString(sum.Sum(nil))), info
}

func failedStamp(err error) Stamp {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	return Stamp(unreadable + err.Error())
}

// trusted is the minimum age of a file before its unchanged time and size prove that it did not change.
// An edit within one tick of the file system's clock changes neither.
const trusted = 2 * time.Second

// cachedFile caches the last check of a file, so that an unchanged file is not read again.
type cachedFile struct {
	path  string
	stamp Stamp
	info  fs.FileInfo // if nil, the file is read again
}

func (l *cachedFile) look() Stamp {
	if l.info != nil {
		now, err := os.Stat(l.path)
		if err == nil && os.SameFile(now, l.info) && now.Size() == l.info.Size() && now.ModTime().Equal(l.info.ModTime()) {
			return l.stamp
		}
	}
	l.stamp, l.info = readStamp(l.path)
	if l.info != nil && time.Since(l.info.ModTime()) < trusted {
		l.info = nil
	}
	return l.stamp
}

// lookAt returns the combined stamp of all files.
func lookAt(all []cachedFile) Stamp {
	var stamp Stamp
	for i := range all {
		stamp += all[i].look() + "\n"
	}
	return stamp
}
