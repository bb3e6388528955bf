// Package demo is the MCP server that `callyard up` serves if no other is configured: a few tools that
// demonstrate the system and need only this binary.
//
// It speaks MCP over stdio, in both protocol eras. Its tools have no effects.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type echoIn struct {
	Message string `json:"message" jsonschema:"what to say back"`
}

type addIn struct {
	A float64 `json:"a" jsonschema:"the first number"`
	B float64 `json:"b" jsonschema:"the second number"`
}

type sleepIn struct {
	Seconds float64 `json:"seconds" jsonschema:"how long to sleep, at most 300"`
}

type bigIn struct {
	Bytes int `json:"bytes" jsonschema:"how much text to answer, at most 60000000"`
}

type failIn struct {
	Reason string `json:"reason,omitempty" jsonschema:"what to complain about"`
}

const (
	maxSleep = 300
	maxBig   = 60_000_000
	// ticks is the number of progress notifications of a sleep.
	ticks = 10
)

// New returns the server.
func New(version string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "callyard-demo", Title: "Callyard demo", Version: version}, &mcp.ServerOptions{
		Instructions: "Tools to try Callyard. None of them has an effect.",
	})
	no := false
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no}
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Returns the message.", Annotations: reads},
		func(_ context.Context, _ *mcp.CallToolRequest, in echoIn) (*mcp.CallToolResult, any, error) {
			return text("Echo: " + in.Message), nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "add", Description: "Adds two numbers.", Annotations: reads},
		func(_ context.Context, _ *mcp.CallToolRequest, in addIn) (*mcp.CallToolResult, any, error) {
			return text(fmt.Sprintf("%v", in.A+in.B)), nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "sleep", Description: "Sleeps and reports its progress.", Annotations: reads}, sleep)
	mcp.AddTool(s, &mcp.Tool{Name: "big", Description: "Returns text of the requested size.", Annotations: reads},
		func(_ context.Context, _ *mcp.CallToolRequest, in bigIn) (*mcp.CallToolResult, any, error) {
			if in.Bytes < 0 || in.Bytes > maxBig {
				return nil, nil, fmt.Errorf("bytes must be between 0 and %d", maxBig)
			}
			return text(strings.Repeat("x", in.Bytes)), nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "fail", Description: "Returns a tool error.", Annotations: reads},
		func(_ context.Context, _ *mcp.CallToolRequest, in failIn) (*mcp.CallToolResult, any, error) {
			if in.Reason == "" {
				in.Reason = "this tool always fails"
			}
			return nil, nil, errors.New(in.Reason)
		})
	return s
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func sleep(ctx context.Context, req *mcp.CallToolRequest, in sleepIn) (*mcp.CallToolResult, any, error) {
	if in.Seconds < 0 || in.Seconds > maxSleep {
		return nil, nil, fmt.Errorf("seconds must be between 0 and %d", maxSleep)
	}
	total := time.Duration(in.Seconds * float64(time.Second))
	token := req.Params.GetProgressToken()
	step := time.NewTicker(max(total/ticks, time.Millisecond))
	defer step.Stop()
	for n := 1; n <= ticks; n++ {
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-step.C:
		}
		if token == nil {
			continue
		}
		if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(n), Total: ticks, Message: fmt.Sprintf("slept %s of %s", total*time.Duration(n)/ticks, total),
		}); err != nil {
			return nil, nil, fmt.Errorf("reporting progress: %w", err)
		}
	}
	return text(fmt.Sprintf("slept %s", total)), nil, nil
}

// Serve speaks MCP on standard input and output until the input ends.
func Serve(ctx context.Context, version string) error {
	err := New(version).Run(ctx, &mcp.StdioTransport{})
	if err != nil && ctx.Err() == nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("serving the demo tools: %w", err)
	}
	return nil
}
