package hostile

import "fmt"

// Protocol versions of MCP, without and with sessions.
const (
	modern = "2026-07-28"
	legacy = "2025-11-25"
)

// MCP returns valid requests of both protocol versions to the MCP endpoint at mount, such as
// /mcp. tool is the name of a tool there. session is a session of the legacy version.
func MCP(mount, tool, session string) []Golden {
	const accept = "Accept: application/json, text/event-stream"
	var all []Golden
	for _, m := range []struct{ method, name, params string }{
		{"tools/list", "", ``}, {"resources/list", "", ``}, {"resources/templates/list", "", ``}, {"prompts/list", "", ``}, {"server/discover", "", ``},
		{"tools/call", tool, fmt.Sprintf(`"name":%q,"arguments":{"message":"hello"},`, tool)},
		{"resources/read", "demo://one", `"uri":"demo://one",`},
		{"prompts/get", "greet", `"name":"greet","arguments":{"name":"x"},`},
		{"completion/complete", "", `"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"x"},`},
		{"subscriptions/listen", "", `"notifications":{"toolsListChanged":true},`},
		{"tasks/get", "task_x", `"taskId":"task_x",`}, {"tasks/cancel", "task_x", `"taskId":"task_x",`},
	} {
		g := Golden{Operation: "MCP " + modern + " " + m.method, Method: "POST", Path: mount, Header: []string{
			"Content-Type: application/json", accept, "MCP-Protocol-Version: " + modern, "Mcp-Method: " + m.method,
		}}
		if m.name != "" {
			g.Header = append(g.Header, "Mcp-Name: "+m.name)
		}
		g.Body = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`,
			m.method, m.params, modern)
		all = append(all, g)
	}
	old := []string{"Content-Type: application/json", accept, "MCP-Protocol-Version: " + legacy, "Mcp-Session-Id: " + session}
	for _, m := range []struct{ name, body string }{
		{"tools/list", `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`},
		{"tools/call", fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":%q,"arguments":{"message":"hello"},"_meta":{"progressToken":1}}}`, tool)},
		{"ping", `{"jsonrpc":"2.0","id":4,"method":"ping"}`},
		{"logging/setLevel", `{"jsonrpc":"2.0","id":5,"method":"logging/setLevel","params":{"level":"info"}}`},
		{"notifications/cancelled", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3,"reason":"x"}}`},
		{"answer", `{"jsonrpc":"2.0","id":"1","result":{"action":"accept","content":{}}}`},
	} {
		all = append(all, Golden{Operation: "MCP " + legacy + " " + m.name, Method: "POST", Path: mount, Header: old, Body: []byte(m.body)})
	}
	return append(all,
		Golden{Operation: "MCP " + legacy + " initialize", Method: "POST", Path: mount, Header: old[:2], Body: []byte(Initialize)},
		Golden{Operation: "MCP " + legacy + " stream", Method: "GET", Path: mount, Header: []string{"Accept: text/event-stream", old[2], old[3]}},
		Golden{Operation: "MCP metadata", Method: "GET", Path: "/.well-known/oauth-protected-resource" + mount},
	)
}

// Initialize opens a session of the legacy version.
const Initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + legacy + `","capabilities":{"elicitation":{}},"clientInfo":{"name":"hostile","version":"1"}}}`

// Probes returns valid requests to the listener for probes and metrics.
func Probes() []Golden {
	var all []Golden
	for _, path := range []string{"/metrics", "/livez", "/readyz"} {
		all = append(all, Golden{Operation: "GET " + path, Method: "GET", Path: path})
	}
	return all
}
