package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// maxEntries limits the directory entries that one call visits.
const maxEntries = 100_000

// walker visits the entries below a directory. It does not follow symbolic links.
type walker struct {
	ctx       context.Context
	max       int  // maximum number of entries; beyond it truncated is set
	hidden    bool // also visit names that begin with a dot
	dirsFirst bool

	seen      int
	skipped   int // directories that could not be read
	truncated bool
}

// errStop ends a walk without an error.
var errStop = errors.New("stop")

// walk calls visit for each entry below dir in name order, and for a directory before its
// entries. depth is the number of levels; the entries of dir have level 1.
func (w *walker) walk(dir place, depth int, visit func(p place, info fs.FileInfo) error) error {
	err := w.level(dir, 1, depth, visit)
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

func (w *walker) level(dir place, level, depth int, visit func(p place, info fs.FileInfo) error) error {
	entries, err := w.entries(dir)
	if err != nil {
		if level == 1 || w.ctx.Err() != nil {
			return err
		}
		w.skipped++
		return nil
	}
	for _, e := range entries {
		if err := visit(e.place, e.info); err != nil {
			return err
		}
		if e.info.IsDir() && level < depth && !w.truncated {
			if err := w.level(e.place, level+1, depth, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// found is an entry of a directory.
type found struct {
	place place
	info  fs.FileInfo
}

// entries reads a directory, sorted by name.
func (w *walker) entries(dir place) ([]found, error) {
	f, err := dir.OpenFile(dir.name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, dir.fault(err)
	}
	defer f.Close()
	var out []found
	for !w.truncated {
		names, err := f.Readdirnames(512)
		for _, name := range names {
			if !w.hidden && strings.HasPrefix(name, ".") {
				continue
			}
			if w.seen++; w.seen > w.max {
				w.truncated = true
				break
			}
			p := dir.child(name)
			info, err := p.Lstat(p.name)
			if err != nil { // it has just been removed
				continue
			}
			out = append(out, found{p, info})
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, dir.fault(err)
		}
		if err := w.ctx.Err(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b found) int {
		if w.dirsFirst && a.info.IsDir() != b.info.IsDir() {
			if a.info.IsDir() {
				return -1
			}
			return 1
		}
		return strings.Compare(a.place.name, b.place.name)
	})
	return out, nil
}
