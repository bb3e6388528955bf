package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/callyard/callyard/internal/launch/native"
)

// Limits of copying and deleting.
const (
	maxCopy   = 100 << 20 // bytes of a file
	maxDelete = 10_000    // entries of a directory, including those of its subdirectories
)

type (
	fromTo struct {
		Source      string `json:"source" jsonschema:"Path of the file or directory."`
		Destination string `json:"destination" jsonschema:"Its new path, in a writable directory. Nothing may be there, and the directory around it must exist."`
	}
	deleteArguments struct {
		Path      string `json:"path" jsonschema:"Path of the file, symbolic link or directory."`
		Recursive bool   `json:"recursive,omitempty" jsonschema:"If true, a directory is deleted with all that is in it. Without it, only an empty directory is."`
	}
	createArguments struct {
		Path string `json:"path" jsonschema:"Path of the directory. Directories around it that are missing are created too."`
	}
)

// destination returns a place that does not exist yet.
func (s *Server) destination(path string) (place, error) {
	p, err := s.findWritable(path)
	if err != nil {
		return place{}, err
	}
	switch _, err := p.Lstat(p.name); {
	case err == nil:
		return place{}, fmt.Errorf("%s exists; delete it first, or choose another destination", clip(p.shown))
	case !errors.Is(err, fs.ErrNotExist):
		return place{}, p.fault(err)
	}
	return p, nil
}

// changeTo begins a change that turns a source into a destination. find finds the source, and
// done ends the change.
func (s *Server) changeTo(ctx context.Context, find func(string) (place, error), in fromTo) (from, to place, done func(), err error) {
	if from, err = find(in.Source); err != nil {
		return place{}, place{}, nil, err
	}
	if done, err = s.change(ctx); err != nil {
		return place{}, place{}, nil, err
	}
	if to, err = s.destination(in.Destination); err != nil {
		done()
		return place{}, place{}, nil, err
	}
	return from, to, done, nil
}

func (s *Server) copyFile(ctx context.Context, _ *native.Call, in fromTo) (string, error) {
	from, to, done, err := s.changeTo(ctx, s.find, in)
	if err != nil {
		return "", err
	}
	defer done()
	n, err := from.copyTo(ctx, to)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s is copied to %s (%d bytes).", from.shown, to.shown, n), nil
}

func (s *Server) move(ctx context.Context, _ *native.Call, in fromTo) (string, error) {
	from, to, done, err := s.changeTo(ctx, s.findWritable, in)
	if err != nil {
		return "", err
	}
	defer done()
	info, err := from.Lstat(from.name)
	switch {
	case err != nil:
		return "", from.fault(err)
	case !info.IsDir() && !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is a %s; only files and directories are moved", clip(from.shown), typeOf(info.Mode()))
	case s.holdsRoot(from):
		return "", fmt.Errorf("%s contains a root and cannot be moved", clip(from.shown))
	case from.root == to.root:
		err = from.fault(from.Rename(from.name, to.name))
	case info.IsDir():
		return "", errors.New("a directory cannot be moved into another root; copy its files")
	default:
		if _, err = from.copyTo(ctx, to); err == nil {
			err = from.fault(from.Remove(from.name))
		}
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s is moved to %s.", from.shown, to.shown), nil
}

// holdsRoot reports whether another root is inside a place.
func (s *Server) holdsRoot(p place) bool {
	for _, r := range s.roots {
		if r != p.root && strings.HasPrefix(r.real, p.real+"/"+p.name+"/") || r.real == p.real+"/"+p.name {
			return true
		}
	}
	return false
}

func (s *Server) remove(ctx context.Context, _ *native.Call, in deleteArguments) (string, error) {
	p, err := s.findWritable(in.Path)
	if err != nil {
		return "", err
	}
	done, err := s.change(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	info, err := p.Lstat(p.name)
	if err != nil {
		return "", p.fault(err)
	}
	switch {
	case s.holdsRoot(p):
		return "", fmt.Errorf("%s contains a root and cannot be deleted", clip(p.shown))
	case !info.IsDir() || !in.Recursive:
		if err := p.Remove(p.name); err != nil {
			if info.IsDir() {
				return "", fmt.Errorf("%w; set recursive to delete a directory with its content", p.fault(err))
			}
			return "", p.fault(err)
		}
		return p.shown + " is deleted.", nil
	}
	w := walker{ctx: ctx, max: maxDelete, hidden: true}
	n := 0
	if err := w.walk(p, maxDepth, func(place, fs.FileInfo) error { n++; return nil }); err != nil {
		return "", err
	}
	if w.truncated {
		return "", fmt.Errorf("%s has more than %d entries; delete the directories in it one by one", clip(p.shown), maxDelete)
	}
	if err := p.RemoveAll(p.name); err != nil {
		return "", p.fault(err)
	}
	return fmt.Sprintf("%s is deleted with %d entries.", p.shown, n), nil
}

func (s *Server) createDir(_ context.Context, _ *native.Call, in createArguments) (string, error) {
	p, err := s.findWritable(in.Path)
	if err != nil {
		return "", err
	}
	if err := p.MkdirAll(p.name, 0o755); err != nil {
		return "", p.fault(err)
	}
	return p.shown + " exists.", nil
}
