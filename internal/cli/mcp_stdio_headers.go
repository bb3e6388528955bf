package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
)

// headersRefused reports whether the endpoint refused a request because its headers do not repeat
// its arguments. The body can be read again.
func headersRefused(resp *http.Response) bool {
	if resp.StatusCode != http.StatusBadRequest {
		return false
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(text))
	var m struct {
		Error struct {
			Code int64 `json:"code"`
		} `json:"error"`
	}
	return err == nil && json.Unmarshal(text, &m) == nil && m.Error.Code == mcpwire.CodeHeaderMismatch
}

// listTools reads the list of tools for the headers of a call: a client may call a tool that it has
// not listed, or whose schema has changed since. m is the call. It returns false if it cannot be read.
func (b *bridge) listTools(ctx context.Context, m *envelope, version string) bool {
	meta := make(map[string]json.RawMessage)
	for key, value := range m.Params.Meta {
		if key != "progressToken" {
			meta[key] = value
		}
	}
	params := map[string]any{"_meta": meta}
	for {
		body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 0, "method": mcpwire.MethodListTools, "params": params})
		if err != nil {
			return false
		}
		resp, err := b.send(ctx, http.MethodPost, body, version, func(r *http.Request) {
			r.Header.Set("Accept", mediaJSON)
			r.Header.Set(mcpwire.HeaderMethod, mcpwire.MethodListTools)
		})
		if err != nil {
			return false
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			return false
		}
		b.storeParamHeaders(text)
		cursor, more := rawjson.Text(rawjson.Get(rawjson.Get(text, "result"), "nextCursor"))
		if !more {
			return true
		}
		params["cursor"] = cursor
	}
}

// storeParamHeaders stores the arguments of each tool that must be repeated in headers.
func (b *bridge) storeParamHeaders(answer []byte) {
	var m struct {
		Result struct {
			Tools []struct {
				Name  string          `json:"name"`
				Input json.RawMessage `json:"inputSchema"`
			} `json:"tools"`
		} `json:"result"`
	}
	if json.Unmarshal(answer, &m) != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, tool := range m.Result.Tools {
		b.headers[tool.Name] = mcpwire.ParamHeaders(tool.Input)
	}
}

// setParamHeaders sets the headers that repeat arguments.
func (b *bridge) setParamHeaders(r *http.Request, m *envelope) {
	if m.Method != schema.MethodCallTool {
		return
	}
	b.mu.Lock()
	list := b.headers[m.Params.Name]
	b.mu.Unlock()
	for _, want := range list {
		if text, ok := mcpwire.HeaderText(want.Argument(m.Params.Arguments)); ok {
			r.Header.Set(want.Name, mcpwire.EncodeHeader(text))
		}
	}
}
