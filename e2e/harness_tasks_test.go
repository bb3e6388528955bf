package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tasksVariable makes this binary an MCP server with the tools that the Tasks
// scenarios of the conformance suite call.
const tasksVariable = "CALLYARD_MCPTEST_TASKS"

// tasksServer returns the entry of that server.
func tasksServer() entry {
	return entry{Command: programs.self, Env: map[string]string{tasksVariable: "1", "GORACE": "atexit_sleep_ms=0"}}
}

// oldServer returns a server of the latest older protocol version, with a tool that sends a
// request to its caller itself.
func oldServer() entry {
	return entry{Command: programs.self, Env: map[string]string{tasksVariable: "old", "GORACE": "atexit_sleep_ms=0"}, Asks: true}
}

// serveOld serves until stdin ends.
func serveOld() int {
	server := mcp.NewServer(&mcp.Implementation{Name: "old", Version: "1"}, &mcp.ServerOptions{SupportedProtocolVersions: []string{legacy}})
	server.AddTool(&mcp.Tool{Name: "greet", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		names := ""
		for _, question := range []string{"Which name?", "Which surname?"} {
			got, err := r.Session.Elicit(ctx, &mcp.ElicitParams{
				Message: question, RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`),
			})
			if err != nil {
				return nil, err
			}
			names += fmt.Sprint(got.Content["name"], " ")
		}
		return saying("Hello, " + names), nil
	})
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return fault(err)
	}
	return 0
}

// holdTasks is the policy that turns calls into tasks: long work is stored, and a
// deletion waits for its caller's confirmation. Of the other tools, test_tool_with_task creates
// tasks by its definition.
const holdTasks = `rules:
  - name: long-work
    match: {server: tasks, tool: [slow_compute, failing_job, protocol_error_job, multi_input]}
    level: 1
    durable: true
  - name: deletions
    match: {server: tasks, tool: confirm_delete}
    level: 2
    approval: {by: caller}
  - name: the-rest
    match: {server: tasks}
    level: 1
`

// serveTasks serves until stdin ends.
func serveTasks() int {
	if os.Getenv(tasksVariable) == "old" {
		return serveOld()
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "tasks", Version: "1"}, nil)
	var listed []json.RawMessage // the SDK's list does not support tools that only run as tasks
	add := func(name string, h mcp.ToolHandler) {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, h)
		execution := ""
		if name == "failing_job" || name == "test_tool_with_task" {
			execution = `,"execution":{"taskSupport":"required"}`
		}
		listed = append(listed, fmt.Appendf(nil, `{"name":%q,"inputSchema":{"type":"object"}%s}`, name, execution))
	}
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if method == "tools/list" {
				return &toolList{tools: listed}, nil
			}
			return next(ctx, method, r)
		}
	})
	add("greet", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in struct{ Name string }
		err := json.Unmarshal(r.Params.Arguments, &in)
		return saying(fmt.Sprintf("Hello, %s!", in.Name)), err
	})
	add("slow_compute", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in struct{ Seconds float64 }
		if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
			return nil, err
		}
		done := time.NewTimer(time.Duration(in.Seconds * float64(time.Second)))
		defer done.Stop()
		select {
		case <-done.C:
			return saying("computed"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	add("failing_job", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		failed := saying("the job failed")
		failed.IsError = true
		return failed, nil
	})
	add("protocol_error_job", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("the job broke down")
	})
	add("confirm_delete", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return saying("deleted"), nil
	})
	add("multi_input", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return asking(r, "first", "second"), nil
	})
	add("test_tool_with_task", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return asking(r, "user_name"), nil
	})
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return fault(err)
	}
	return 0
}

// toolList is a verbatim list of tools.
type toolList struct {
	mcp.ResultBase
	tools []json.RawMessage
}

// MarshalJSON encodes it in the format of the current protocol version.
func (l *toolList) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"tools": l.tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "public"})
}

func saying(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// asking requests a name under each key, and returns the names when all have been provided.
func asking(r *mcp.CallToolRequest, keys ...string) *mcp.CallToolResult {
	names := ""
	questions := make(mcp.InputRequestMap)
	for _, key := range keys {
		got, ok := r.Params.InputResponses[key].(*mcp.ElicitResult)
		if ok && got.Action == "accept" {
			names += fmt.Sprint(got.Content["name"], " ")
			continue
		}
		questions[key] = &mcp.ElicitParams{
			Message:         "Which name?",
			RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`),
		}
	}
	if len(questions) > 0 {
		return &mcp.CallToolResult{InputRequests: questions}
	}
	return saying(names)
}
