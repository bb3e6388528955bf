package format

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Names of tools in MCP: 1 to 128 of these characters (specification of tools, section
// "Tool Names").
const (
	maxMCPName   = 128
	mcpNameSum   = 8 // hex digits
	mcpServerCut = 40
)

// MCPName returns the name of a tool in a list with the tools of several servers: "server__tool" if
// that is legal and can be split again, else [MarkedMCPName]. It depends only on the two names, so
// it is the same at every front door and after every restart.
func MCPName(server, tool string) string {
	plain := server + separator + tool
	if len(plain) <= maxMCPName && server != "" && tool != "" && mcpLegal(plain) &&
		!strings.Contains(server, separator) && !strings.HasSuffix(server, "_") && !strings.HasPrefix(tool, "_") {
		return plain
	}
	return MarkedMCPName(server, tool)
}

// MarkedMCPName returns a legal name like [MCPName] that ends in a digest of server and tool.
func MarkedMCPName(server, tool string) string {
	head := replaceIllegal(server)
	return marked(head[:min(len(head), mcpServerCut)]+separator+replaceIllegal(tool), server, tool)
}

// MCPNameAs returns name if it is legal in MCP, else a similar name that ends in a digest of the
// server and the tool that it stands for.
func MCPNameAs(name, server, tool string) string {
	if name != "" && len(name) <= maxMCPName && mcpLegal(name) {
		return name
	}
	return marked(replaceIllegal(name), server, tool)
}

// marked appends a digest of server and tool to a name, shortened if needed.
func marked(name, server, tool string) string {
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	tail := "." + hex.EncodeToString(sum[:])[:mcpNameSum]
	return name[:min(len(name), maxMCPName-len(tail))] + tail
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

// replaceIllegal replaces each illegal character.
func replaceIllegal(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && mcpNameByte(byte(r)) {
			return r
		}
		return '-'
	}, name)
}
