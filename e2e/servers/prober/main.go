//go:build linux

// Command prober is an MCP server that tries to escape from its container, for the tests of
// package sandbox. Each of its tools is one attempt, which
// returns "blocked: …" or "through: …". Other tools exhaust resources.
//
// It is built static, so that it can be the only file of an image.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	} `json:"params"`
}

func main() {
	mode := ""
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	switch mode {
	case "sleep": // started by bombs and attempts
		time.Sleep(time.Minute)
		return
	case "true":
		return
	case "exit":
		os.Exit(7)
	case "deaf": // reads nothing and ignores signals
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		for {
			time.Sleep(time.Hour)
		}
	case "stderr":
		for i := range 2000 {
			fmt.Fprintf(os.Stderr, "line %d\n", i)
		}
		fmt.Fprintf(os.Stderr, "last %s\n", os.Getenv("API_KEY"))
	}
	serve()
}

func serve() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var r request
		if json.Unmarshal(in.Bytes(), &r) != nil || len(r.ID) == 0 {
			continue
		}
		var result any
		switch r.Method {
		case "initialize":
			result = map[string]any{
				"protocolVersion": "2025-11-25", "capabilities": map[string]any{"tools": map[string]any{}},
				"serverInfo": map[string]any{"name": "prober", "version": "1"},
			}
		case "tools/list":
			var tools []any
			for _, name := range names() {
				tools = append(tools, map[string]any{"name": name, "inputSchema": map[string]any{"type": "object"}})
			}
			result = map[string]any{"tools": tools}
		case "tools/call":
			text := run(r.Params.Name, r.Params.Arguments)
			result = map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}
		case "ping":
			result = map[string]any{}
		default:
			answer(map[string]any{"jsonrpc": "2.0", "id": r.ID, "error": map[string]any{"code": -32601, "message": "no such method"}})
			continue
		}
		answer(map[string]any{"jsonrpc": "2.0", "id": r.ID, "result": result})
	}
}

func answer(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		os.Exit(1)
	}
	_, _ = os.Stdout.Write(append(text, '\n'))
}

func names() []string {
	var out []string
	for name := range attempts {
		out = append(out, name)
	}
	for name := range others {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func run(name string, args map[string]string) string {
	if do, ok := others[name]; ok {
		return do(args)
	}
	if do, ok := attempts[name]; ok {
		if how, err := do(args); err != nil {
			return "blocked: " + err.Error()
		} else {
			return "through: " + how
		}
	}
	return "no such tool"
}
