package mcp

import (
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

// setMark begins the path segment that names a set of tools: /mcp/@set.
const setMark = "@"

// setOf returns the set of a mount.
func setOf(mount string) (set string, of bool) { return strings.CutPrefix(mount, setMark) }

// ofServer reports whether a mount is that of a single server.
func ofServer(mount string) bool { return mount != "" && !strings.HasPrefix(mount, setMark) }

// known returns an error if the mount does not exist.
func (ls *lists) known(at place) (err error) {
	if set, of := setOf(at.mount); of {
		return ls.catalogAt(at).KnowsSet(set)
	} else if at.mount != "" {
		_, err = ls.catalogAt(at).Server(schema.ServerID(at.mount))
	}
	return err
}

// buildSet builds the view of a set: its tools, in its order and with its names. A set has
// no resources and prompts.
func (ls *lists) buildSet(at place, set string, now uint64) *view {
	v := &view{mount: at.mount, at: now, toolOf: make(map[string]target), headers: make(map[target][]mcpwire.ParamHeader), taskOnly: make(map[target]bool)}
	v.encode(items{})
	of, err := ls.catalogAt(at).SetView(set)
	if err != nil {
		return v // do not cache a set that does not exist
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var tools []item
	entries := make(map[target]*entry)
	seen := make(map[schema.ServerID]bool)
	for i := range of.Tools {
		t := &of.Tools[i]
		if !seen[t.Server] {
			seen[t.Server] = true
			v.add(ls.serverLocked(t.Server), entries)
		}
		to := target{t.Server, t.Tool.Name}
		e := entries[to]
		if e == nil || !t.Offered() {
			continue
		}
		it := e.item(t.Name, to)
		v.toolOf[t.Name] = to
		v.marks.tools = mix(v.marks.tools, it.raw)
		tools = append(tools, it)
	}
	v.marks.tools = mix(v.marks.tools, strconv.AppendInt(nil, int64(len(tools)), 10))
	v.encode(items{tools: tools})
	ls.views[at] = v
	return v
}

// add adds the definitions of a server's tools. p is nil if they are not known.
func (v *view) add(p *serverLists, entries map[target]*entry) {
	if p == nil {
		return
	}
	for i := range p.tools {
		entries[target{p.server, p.tools[i].name}] = &p.tools[i]
	}
	v.need(p)
}

// unlisted finds a tool of a set that is disabled or offline. It is not listed, but a call of it
// returns the reason.
func (ls *lists) unlisted(at place, set, name string) (target, bool) {
	of, err := ls.catalogAt(at).SetView(set)
	if err != nil {
		return target{}, false
	}
	for i := range of.Tools {
		if t := &of.Tools[i]; t.Name == name {
			return target{t.Server, t.Tool.Name}, true
		}
	}
	return target{}, false
}
