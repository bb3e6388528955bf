package mcp

import (
	"encoding/json"
	"slices"

	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/pkg/schema"
)

// entry is one definition: its name and its encoded bytes.
type entry struct {
	name string
	raw  json.RawMessage
	from int // start of the value of its name
	to   int

	legacy *entry // for clients of the legacy era, nil if it is the same
}

func entryOf(raw json.RawMessage, name string) entry {
	e := entry{name: name, raw: raw}
	members(raw, func(key string, from, to int) {
		if key == "name" {
			e.from, e.to = from, to
		}
	})
	return e
}

// item returns the entry of a list under a name.
func (e *entry) item(name string, of target) item {
	it := item{name: name, raw: e.renamed(name), of: of}
	if e.legacy != nil {
		it.legacy = e.legacy.renamed(name)
	}
	return it
}

// renamed returns the definition with another name.
func (e *entry) renamed(name string) []byte {
	if name == e.name {
		return e.raw
	}
	out := make([]byte, 0, len(e.raw)+len(name)+8)
	out = append(out, e.raw[:e.from]...)
	out = appendQuoted(out, name)
	return append(out, e.raw[e.to:]...)
}

// item is one encoded entry of a list and its target.
type item struct {
	name   string
	raw    []byte
	of     target
	legacy []byte // for clients of the legacy era, nil if it is the same
}

func legacyItems(items []item) []item {
	items = slices.Clone(items)
	for i := range items {
		if items[i].legacy != nil {
			items[i].raw = items[i].legacy
		}
	}
	return items
}

// gather adds the entries of a server, with their names at this mount.
func gather(to []item, names map[string]target, entries []entry, server schema.ServerID, bare bool) []item {
	for i := range entries {
		e := &entries[i]
		name := e.name
		if !bare {
			if name = format.MCPName(string(server), e.name); names[name].server != "" {
				name = format.MarkedMCPName(string(server), e.name)
			}
		}
		names[name] = target{server, e.name}
		to = append(to, e.item(name, target{server, e.name}))
	}
	return to
}
