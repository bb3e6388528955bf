package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// At /mcp the tools of all servers stand side by side, so each carries the name of
// its server: server__tool. The name is a function of the two alone, so it is the
// same at every front door and after every restart; what it stands for is looked
// up, never taken apart.
const (
	nameMost  = 128
	nameGlue  = "__"
	nameSum   = 8 // hex digits
	serverCut = 40
)

// exposed returns the name of a tool at /mcp. Where the two names are not legal as
// they are, or could be read as others, a digest of both is put behind a legal
// likeness.
func exposed(server, tool string) string {
	plain := server + nameGlue + tool
	if len(plain) <= nameMost && server != "" && tool != "" && legal(server) && legal(tool) &&
		!strings.Contains(server, nameGlue) && !strings.HasSuffix(server, "_") && !strings.HasPrefix(tool, "_") {
		return plain
	}
	return marked(server, tool)
}

// marked is the name with a digest.
func marked(server, tool string) string {
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	tail := "." + hex.EncodeToString(sum[:])[:nameSum]
	head := likeness(server)
	head = head[:min(len(head), serverCut)] + nameGlue + likeness(tool)
	return head[:min(len(head), nameMost-len(tail))] + tail
}

// tool returns what a name stands for at a mount.
func (ls *lists) tool(mount, name string) (target, bool) {
	if mount != "" {
		return target{mount, name}, true // the gate knows whether it is there
	}
	to, ok := ls.view("").toolOf[name]
	if ok {
		return to, true
	}
	// One that is switched off is not listed, and a call of it is told why.
	if server, tool, found := strings.Cut(name, nameGlue); found && exposed(server, tool) == name {
		if _, err := ls.catalog.Tool(server, tool); err == nil || schema.KindOf(err) == schema.KindUnavailable {
			return target{server, tool}, true
		}
	}
	return target{}, false
}

func legal(name string) bool {
	for i := 0; i < len(name); i++ {
		if !legalByte(name[i]) {
			return false
		}
	}
	return true
}

func legalByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

// likeness replaces what is not legal, one character for each.
func likeness(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && legalByte(byte(r)) {
			return r
		}
		return '-'
	}, name)
}
