package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/launch/native"
)

// Limits of list and tree.
const (
	maxListed    = 1000
	maxTree      = 2000
	maxTreeDepth = 20
)

type (
	listArguments struct {
		Path   string `json:"path,omitempty" jsonschema:"Path of the directory. If left out, the root, or with several roots the list of them."`
		Hidden bool   `json:"show_hidden,omitempty" jsonschema:"If true, names that begin with a dot are included."`
	}
	listEntry struct {
		Name     string `json:"name"`
		Type     string `json:"type" jsonschema:"file, directory, symlink, FIFO, socket, device or special file."`
		Size     int64  `json:"size" jsonschema:"Size in bytes."`
		Modified string `json:"last_modified,omitempty" jsonschema:"Time of the last change, ISO 8601 in UTC."`
	}
	listResult struct {
		Path      string      `json:"path,omitempty"`
		Entries   []listEntry `json:"entries"`
		Truncated bool        `json:"truncated,omitempty" jsonschema:"Whether entries are left out, because there are too many."`
	}
	treeArguments struct {
		Path    string `json:"path,omitempty" jsonschema:"Path of the directory. It may be left out where there is one root."`
		Depth   int    `json:"max_depth,omitempty" jsonschema:"Number of levels to show, 3 if left out, at most 20."`
		Hidden  bool   `json:"show_hidden,omitempty" jsonschema:"If true, names that begin with a dot are included."`
		Pattern string `json:"file_pattern,omitempty" jsonschema:"Pattern of the names of files to show, such as *.go. Directories are always shown."`
	}
)

func (s *Server) list(ctx context.Context, _ *native.Call, in listArguments) (listResult, error) {
	if in.Path == "" && len(s.roots) > 1 {
		r := listResult{}
		for _, one := range s.roots {
			r.Entries = append(r.Entries, listEntry{Name: one.path, Type: "directory"})
		}
		return r, nil
	}
	p, err := s.findDirectory(in.Path)
	if err != nil {
		return listResult{}, err
	}
	w := walker{ctx: ctx, max: maxListed, hidden: in.Hidden}
	r := listResult{Path: p.shown, Entries: []listEntry{}}
	err = w.walk(p, 1, func(p place, info fs.FileInfo) error {
		r.Entries = append(r.Entries, listEntry{path.Base(p.name), typeOf(info.Mode()), info.Size(), info.ModTime().UTC().Format(time.RFC3339)})
		return nil
	})
	r.Truncated = w.truncated
	return r, err
}

// findDirectory returns the place of a directory.
func (s *Server) findDirectory(name string) (place, error) {
	p, err := s.find(name)
	if err != nil {
		return place{}, err
	}
	info, err := p.Stat(p.name)
	switch {
	case err != nil:
		return place{}, p.fault(err)
	case !info.IsDir():
		return place{}, fmt.Errorf("%s is not a directory", clip(p.shown))
	}
	return p, nil
}

func (s *Server) tree(ctx context.Context, _ *native.Call, in treeArguments) (string, error) {
	depth := in.Depth
	switch {
	case depth < 0 || depth > maxTreeDepth:
		return "", fmt.Errorf("max_depth is between 1 and %d", maxTreeDepth)
	case depth == 0:
		depth = 3
	}
	if _, err := path.Match(in.Pattern, ""); err != nil || len(in.Pattern) > maxPattern {
		return "", errPattern
	}
	p, err := s.findDirectory(in.Path)
	if err != nil {
		return "", err
	}
	t := treeWriter{pattern: in.Pattern, left: maxTree}
	t.out.WriteString(path.Base(p.shown) + "/")
	w := walker{ctx: ctx, max: maxEntries, hidden: in.Hidden, dirsFirst: true}
	if err := t.level(&w, p, "", depth); err != nil && !errors.Is(err, errStop) {
		return "", err
	}
	if w.truncated || t.left == 0 {
		t.out.WriteString("\n\n... truncated: show a directory in it, or fewer levels")
	}
	return t.out.String(), nil
}

// treeWriter draws a tree.
type treeWriter struct {
	pattern string
	left    int
	out     strings.Builder
}

func (t *treeWriter) level(w *walker, dir place, indent string, depth int) error {
	entries, err := w.entries(dir)
	if err != nil {
		if indent == "" || w.ctx.Err() != nil {
			return err
		}
		return nil // an unreadable directory is shown without content
	}
	shown := entries[:0]
	for _, e := range entries {
		if matched, _ := path.Match(t.pattern, path.Base(e.place.name)); matched || t.pattern == "" || e.info.IsDir() {
			shown = append(shown, e)
		}
	}
	for i, e := range shown {
		if t.left == 0 || w.truncated {
			return errStop
		}
		t.left--
		branch, next := "├── ", "│   "
		if i == len(shown)-1 {
			branch, next = "└── ", "    "
		}
		suffix := ""
		switch mode := e.info.Mode(); {
		case mode.IsDir():
			suffix = "/"
		case mode&fs.ModeSymlink != 0:
			suffix = "@"
		}
		t.out.WriteString("\n" + indent + branch + path.Base(e.place.name) + suffix)
		if e.info.IsDir() && depth > 1 {
			if err := t.level(w, e.place, indent+next, depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}
