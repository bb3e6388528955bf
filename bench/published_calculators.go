package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// calculators are the services that both sides call: a REST service with its OpenAPI
// document, and an MCP server on streamable HTTP.
type calculators struct {
	base   string
	server *http.Server
	tools  *mcp.Server
	ended  chan error
}

func startCalculators() (*calculators, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the calculators: %w", err)
	}
	c := &calculators{base: "http://" + l.Addr().String(), ended: make(chan error, 1)}
	mux := http.NewServeMux()
	document, err := json.Marshal(calculatorDocument(c.base))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("writing the OpenAPI document: %w", err), l.Close())
	}
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(document)
	})
	tools := mcp.NewServer(&mcp.Implementation{Name: "calculator", Version: "1"}, nil)
	for name, apply := range map[string]func(context.Context, pair) (float64, error){
		"add": calculator{}.add, "subtract": calculator{}.subtract, "multiply": calculator{}.multiply, "divide": calculator{}.divide,
	} {
		mux.HandleFunc("POST /"+name, func(w http.ResponseWriter, r *http.Request) {
			var p pair
			if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
				http.Error(w, "the body is not JSON", http.StatusBadRequest)
				return
			}
			value, _ := apply(r.Context(), p) // cannot fail
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"result":%v}`, value)
		})
		mcp.AddTool(tools, &mcp.Tool{Name: name, Description: "Calculates."}, func(ctx context.Context, _ *mcp.CallToolRequest, p pair) (*mcp.CallToolResult, any, error) {
			value, err := apply(ctx, p)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(value)}}}, nil, err
		})
	}
	c.tools = tools
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, nil))
	c.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { c.ended <- c.server.Serve(l) }()
	return c, nil
}

// close stops the services and their connections.
func (c *calculators) close() error {
	err := c.server.Close()
	for session := range c.tools.Sessions() { // sessions of clients that left without closing them
		err = errors.Join(err, session.Close())
	}
	if ended := <-c.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	if err != nil {
		return fmt.Errorf("ending the calculators: %w", err)
	}
	return nil
}

// calculatorDocument describes the REST service.
func calculatorDocument(base string) map[string]any {
	number := map[string]any{"type": "number"}
	object := func(properties map[string]any, required ...string) map[string]any {
		return map[string]any{"type": "object", "properties": properties, "required": required}
	}
	content := func(schema map[string]any) map[string]any {
		return map[string]any{"application/json": map[string]any{"schema": schema}}
	}
	paths := map[string]any{}
	for _, name := range calculatorTools() {
		paths["/"+name] = map[string]any{"post": map[string]any{
			"operationId": name, "summary": "Calculates.",
			"requestBody": map[string]any{"required": true, "content": content(object(map[string]any{"a": number, "b": number}, "a", "b"))},
			"responses":   map[string]any{"200": map[string]any{"description": "The result.", "content": content(object(map[string]any{"result": number}, "result"))}},
		}}
	}
	return map[string]any{"openapi": "3.1.0", "info": map[string]any{"title": "calculator", "version": "1"}, "servers": []any{map[string]any{"url": base}}, "paths": paths}
}
