package format

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Names of tools in MCP: 1 to 128 of these characters (specification of tools, section
// "Tool Names").
const (
	mcpNameMost  = 128
	mcpNameSum   = 8 // hex digits
	mcpServerCut = 40
)

// MCPName returns the name of a tool in a list that has the tools of several servers:
// "server__tool" where both are legal as they are and can be read back, else
// [MarkedMCPName]. It depends on nothing but the two, so it is the same at every front
// door and after every restart.
func MCPName(server, tool string) string {
	plain := server + separator + tool
	if len(plain) <= mcpNameMost && server != "" && tool != "" && mcpLegal(plain) &&
		!strings.Contains(server, separator) && !strings.HasSuffix(server, "_") && !strings.HasPrefix(tool, "_") {
		return plain
	}
	return MarkedMCPName(server, tool)
}

// MarkedMCPName returns a legal name like [MCPName] that ends in a digest of both.
func MarkedMCPName(server, tool string) string {
	head := mcpSpelled(server)
	return marked(head[:min(len(head), mcpServerCut)]+separator+mcpSpelled(tool), server, tool)
}

// MCPNameAs returns name where it is legal in MCP, else something like it that ends in a
// digest of the server and the tool that it stands for.
func MCPNameAs(name, server, tool string) string {
	if name != "" && len(name) <= mcpNameMost && mcpLegal(name) {
		return name
	}
	return marked(mcpSpelled(name), server, tool)
}

// marked puts a digest of what the name stands for behind it.
func marked(name, server, tool string) string {
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	tail := "." + hex.EncodeToString(sum[:])[:mcpNameSum]
	return name[:min(len(name), mcpNameMost-len(tail))] + tail
}

func mcpLegal(name string) bool {
	for i := range len(name) {
		if !mcpNameByte(name[i]) {
			return false
		}
	}
	return true
}

func mcpNameByte(c byte) bool { return nameByte(c) || c == '.' }

// mcpSpelled replaces what is not legal, one character for each.
func mcpSpelled(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && mcpNameByte(byte(r)) {
			return r
		}
		return '-'
	}, name)
}
