package mcp

import (
	"strings"

	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/pkg/schema"
)

// At /mcp the tools of all servers stand side by side, so each carries the name of
// its server: [format.MCPName]. What a name stands for is looked up, never taken apart.

// nameGlue stands between server and tool.
const nameGlue = "__"

// tool returns what a name stands for at a mount.
func (ls *lists) tool(at place, name string) (target, bool) {
	mount := at.mount
	if ofServer(mount) {
		return target{schema.ServerID(mount), name}, true // the gate knows whether it is there
	}
	to, ok := ls.view(at).toolOf[name]
	if ok {
		return to, true
	}
	if set, of := setOf(mount); of {
		return ls.unlisted(at, set, name)
	}
	// One that is switched off is not listed, and a call of it is told why.
	if server, tool, found := strings.Cut(name, nameGlue); found && format.MCPName(server, tool) == name {
		_, err := ls.catalog.Tool(schema.ServerID(server), tool)
		if ls.sees(at, schema.ServerID(server)) && (err == nil || schema.KindOf(err) == schema.KindUnavailable) {
			return target{schema.ServerID(server), tool}, true
		}
	}
	return target{}, false
}
