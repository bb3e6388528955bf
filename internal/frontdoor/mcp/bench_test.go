package mcp

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

func quiet(o *Options) { o.Log = slog.New(slog.DiscardHandler) }

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchmarkRequest sends a request over one connection with a client of negligible cost, so that it
// measures the server. It compares with BenchmarkACall of package rest.
func benchmarkRequest(b *testing.B, f *fabric, method, name, members string) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	body := modernBody(method, members, `{}`, "")
	head := ""
	if name != "" {
		head = "Mcp-Name: " + name + "\r\n"
	}
	request := fmt.Appendf(nil, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
		"MCP-Protocol-Version: %s\r\nMcp-Method: %s\r\n%sContent-Length: %d\r\n\r\n%s", mcpwire.Modern, method, head, len(body), body)
	in := bufio.NewReader(conn)
	b.ReportAllocs()
	began := cpu()
	for b.Loop() {
		if _, err := conn.Write(request); err != nil {
			b.Fatal(err)
		}
		length := 0
		for first := true; ; first = false {
			line, err := in.ReadSlice('\n')
			if err != nil {
				b.Fatal(err)
			}
			if first && !strings.HasPrefix(string(line), "HTTP/1.1 200") {
				b.Fatalf("%s", line)
			}
			if len(line) == 2 {
				break
			}
			if strings.HasPrefix(string(line), "Content-Length: ") {
				_, _ = fmt.Sscan(string(line[16:]), &length)
			}
		}
		if _, err := in.Discard(length); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpu()-began).Microseconds())/float64(b.N), "cpu-µs/op")
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
