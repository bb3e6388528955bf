package mcp

import (
	"strings"

	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/pkg/schema"
)

// At /mcp the tools of all servers are in one list, so each name includes its server:
// [format.MCPName]. A name is always looked up, never parsed.

// nameGlue separates server and tool.
const nameGlue = "__"

// tool resolves a tool name at a mount.
func (ls *lists) tool(at place, name string) (target, bool) {
	mount := at.mount
	if ofServer(mount) {
		return target{schema.ServerID(mount), name}, true // the gate checks whether the tool exists
	}
	to, ok := ls.view(at).toolOf[name]
	if ok {
		return to, true
	}
	if set, of := setOf(mount); of {
		return ls.unlisted(at, set, name)
	}
	// A disabled tool is not listed, but a call of it returns the reason.
	if server, tool, found := strings.Cut(name, nameGlue); found && format.MCPName(server, tool) == name {
		_, err := ls.catalog.Tool(schema.ServerID(server), tool)
		if ls.sees(at, schema.ServerID(server)) && (err == nil || schema.KindOf(err) == schema.KindUnavailable) {
			return target{schema.ServerID(server), tool}, true
		}
	}
	return target{}, false
}
