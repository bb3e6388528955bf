package mcp

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/frontdoor/frontdoortest"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

func quiet(o *Options) { o.Log = slog.New(slog.DiscardHandler) }

// benchmarkRequest measures a request. It compares with BenchmarkACall of package rest.
func benchmarkRequest(b *testing.B, f *fabric, method, name, members string) {
	body := modernBody(method, members, `{}`, "")
	head := ""
	if name != "" {
		head = "Mcp-Name: " + name + "\r\n"
	}
	frontdoortest.Benchmark(b, strings.TrimPrefix(f.url, "http://"), fmt.Appendf(nil, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
		"MCP-Protocol-Version: %s\r\nMcp-Method: %s\r\n%sContent-Length: %d\r\n\r\n%s", mcpwire.Modern, method, head, len(body), body))
}

// BenchmarkACall measures the full path to a scripted worker in this process and back.
func BenchmarkACall(b *testing.B) {
	f := openFabric(b, quiet)
	benchmarkRequest(b, f, "tools/call", "demo__echo", `"name":"demo__echo","arguments":{"message":"`+strings.Repeat("x", 150)+`"}`)
}

// BenchmarkAListOfAThousandTools measures tools/list from the cache.
func BenchmarkAListOfAThousandTools(b *testing.B) {
	f := openFabric(b, quiet)
	var defs schema.Definitions
	for i := range 1000 {
		defs.Tools = append(defs.Tools, raw(fmt.Sprintf(`{"name":"tool_%04d","description":%q,"inputSchema":{"type":"object"}}`, i, strings.Repeat("d", 800))))
	}
	f.define("many", defs)
	f.WaitFor("the tools", func() bool { return len(f.endpoint.lists.view(place{}).toolOf) > 1000 })
	benchmarkRequest(b, f, "tools/list", "", "")
}
