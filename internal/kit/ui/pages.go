package ui

import (
	"fmt"
	"html/template"
	"io/fs"
	"slices"
	"sync"
)

// Pages holds the pages of one folder. Each is parsed when it is first shown, because a parsed page
// takes some 200 KiB of memory, and most processes show none. It is safe for concurrent use.
type Pages struct {
	read map[string]func() (*template.Template, error)
}

// NewPages returns the named pages of the folder dir of fsys. Each is parsed by [Parse], with the
// files named parts before its own.
func NewPages(fsys fs.FS, dir string, funcs template.FuncMap, parts, names []string) *Pages {
	p := &Pages{read: make(map[string]func() (*template.Template, error), len(names))}
	for _, name := range names {
		p.read[name] = sync.OnceValues(func() (*template.Template, error) {
			return Parse(fsys, dir, funcs, slices.Concat(parts, []string{name})...)
		})
	}
	return p
}

// Page returns a page with the frame around it. The error names the file that cannot be read.
func (p *Pages) Page(name string) (*template.Template, error) {
	read, ok := p.read[name]
	if !ok {
		return nil, fmt.Errorf("there is no page %q", name)
	}
	return read()
}
