package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/callyard/callyard/internal/kit/truncate"
)

// root is a directory that calls may use.
type root struct {
	*os.Root
	path     string // as the operator wrote it, cleaned
	real     string // without symbolic links
	writable bool
}

// Server holds the open roots.
type Server struct {
	roots []*root
	write chan struct{} // holds one value while files are being changed
}

// Open opens the roots. Each is an absolute path of a directory, with the suffix ":rw" if
// it is writable.
func Open(paths []string) (*Server, error) {
	s := &Server{write: make(chan struct{}, 1)}
	for _, text := range paths {
		r, err := openRoot(text)
		if err == nil {
			err = s.checkRoot(r)
			s.roots = append(s.roots, r)
		}
		if err != nil {
			s.Close()
			return nil, err
		}
	}
	if len(s.roots) == 0 {
		return nil, errors.New(`roots is empty; give it a list of directories, such as ["/srv/data", "/srv/out:rw"]`)
	}
	return s, nil
}

// Close closes the roots. No call may be running.
func (s *Server) Close() {
	for _, r := range s.roots {
		_ = r.Root.Close() // opened for reading only, so nothing is lost
	}
}

func openRoot(text string) (*root, error) {
	path, writable := strings.CutSuffix(text, ":rw")
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("the root %q is not an absolute path; write it from / on", text)
	}
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("the root %s cannot be opened: %w; create the directory or remove the root", path, cause(err))
	}
	for _, system := range [...]string{"/", "/proc", "/sys", "/dev"} {
		if real == system || system != "/" && isWithin(real, system) {
			return nil, fmt.Errorf("the root %s is a system directory; choose a directory of files", path)
		}
	}
	info, err := os.Stat(real)
	if err == nil && !info.IsDir() {
		return nil, fmt.Errorf("the root %s is not a directory; give the directory that holds it", path)
	}
	opened, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("the root %s cannot be opened: %w; give the worker the right to read it, or remove the root", path, cause(err))
	}
	return &root{Root: opened, path: path, real: real, writable: writable}, nil
}

// checkRoot returns an error if a root is given twice, or is read-only inside a writable one.
func (s *Server) checkRoot(n *root) error {
	for _, o := range s.roots {
		outer, inner := o, n
		if isWithin(o.real, n.real) {
			outer, inner = n, o
		}
		switch {
		case o.real == n.real:
			return fmt.Errorf("the root %s is given twice; remove one", n.path)
		case isWithin(inner.real, outer.real) && outer.writable && !inner.writable:
			return fmt.Errorf("the read-only root %s is inside the writable root %s, which leads into it; make both read only or both writable", inner.path, outer.path)
		}
	}
	return nil
}

// isWithin reports whether a path is a directory or is below it.
func isWithin(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// place is a path of a call: a name in a root.
type place struct {
	*root
	name  string // relative to the root, "." for the root itself
	shown string // as shown in results and errors
}

// Limits of paths.
const (
	maxPath  = 4096 // bytes
	maxDepth = 64   // directories below a root
)

// find returns the place of a path. The empty path is the root, if there is only one.
func (s *Server) find(path string) (place, error) {
	switch {
	case len(path) > maxPath:
		return place{}, fmt.Errorf("the path has %d bytes; at most %d are allowed", len(path), maxPath)
	case strings.ContainsRune(path, 0):
		return place{}, errors.New("the path has a zero byte; remove it")
	case !filepath.IsAbs(path) && len(s.roots) > 1:
		return place{}, fmt.Errorf("%q is not an absolute path; begin it with one of %s", clip(path), s.names())
	case !filepath.IsAbs(path):
		path = s.roots[0].path + "/" + path
	}
	path = filepath.Clean(path)
	var best place
	for _, r := range s.roots {
		for _, prefix := range [...]string{r.path, r.real} {
			if isWithin(path, prefix) && (best.root == nil || len(r.real) > len(best.real)) {
				name := strings.TrimPrefix(strings.TrimPrefix(path, prefix), "/")
				if name == "" {
					name = "."
				}
				best = place{root: r, name: name, shown: path}
			}
		}
	}
	switch {
	case best.root == nil:
		return place{}, fmt.Errorf("%q is outside the allowed directories: %s", clip(path), s.names())
	case strings.Count(best.name, "/") >= maxDepth:
		return place{}, fmt.Errorf("the path is more than %d directories deep", maxDepth)
	}
	return best, nil
}

// child returns a place below a directory.
func (p place) child(name string) place {
	c := place{root: p.root, name: name, shown: p.shown + "/" + name}
	if p.name != "." {
		c.name = p.name + "/" + name
	}
	return c
}

// names lists the roots for people and models.
func (s *Server) names() string {
	var all []string
	for _, r := range s.roots {
		how := " (read only)"
		if r.writable {
			how = " (writable)"
		}
		all = append(all, r.path+how)
	}
	return strings.Join(all, ", ")
}

// fault turns an error of the file system into a sentence about the place.
func (p place) fault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no file or directory %s", clip(p.shown))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the worker has no permission for %s", clip(p.shown))
	case strings.Contains(err.Error(), "path escapes"): // os does not export the error
		return fmt.Errorf("%s leads out of its root through a symbolic link", clip(p.shown))
	}
	return fmt.Errorf("%s: %w", clip(p.shown), cause(err))
}

// cause returns the error of the system call without the path that the call had.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return l.Err
	}
	return err
}

// clip shortens a caller's text for an error.
func clip(text string) string { return truncate.Text(text, 200) }
