package adapt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/plainjson"
	"github.com/callyard/callyard/pkg/schema"
)

// greetTime limits the wait for the name of the source. Without it, a session continues without a name.
const greetTime = 5 * time.Second

// Client returns the HTTP client with which a session reaches the source at [Address]. It is safe
// for concurrent use and starts no goroutine.
func Client(src Source) *http.Client { return &http.Client{Transport: &adapter{src: src}} }

// adapter answers MCP requests from a source.
type adapter struct{ src Source }

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// CloseIdleConnections implements the method that [http.Client.CloseIdleConnections] calls.
func (a *adapter) CloseIdleConnections() { a.src.CloseIdle() }

// RoundTrip answers one request.
func (a *adapter) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil {
		return reply(req, http.StatusMethodNotAllowed, nil), nil
	}
	body, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, err
	}
	if req.Method != http.MethodPost {
		return reply(req, http.StatusMethodNotAllowed, nil), nil
	}
	var m message
	if json.Unmarshal(body, &m) != nil {
		return reply(req, http.StatusBadRequest, fault([]byte("null"), mcpwire.CodeParse, "this is not a JSON-RPC message")), nil
	}
	if len(m.ID) == 0 || string(m.ID) == "null" {
		return reply(req, http.StatusAccepted, nil), nil
	}
	var result []byte
	switch m.Method {
	case mcpwire.MethodDiscover:
		result = a.discover(req.Context())
	case mcpwire.MethodListTools:
		result, err = a.list(req.Context())
	case schema.MethodCallTool:
		return a.call(req, &m)
	case mcpwire.MethodPing:
		result = []byte("{}")
	default:
		return reply(req, http.StatusOK, fault(m.ID, mcpwire.CodeMethodNotFound, "this server has only tools")), nil
	}
	if err != nil {
		return nil, err
	}
	return reply(req, http.StatusOK, answer(m.ID, result)), nil
}

// discover does not fail with the source. The list of tools will fail with a better error.
func (a *adapter) discover(ctx context.Context) []byte {
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	info := map[string]any{"name": "adapted", "version": "unknown"}
	if offer, err := a.src.Offer(ctx); err == nil {
		if offer.Title != "" {
			info["name"], info["title"] = offer.Title, offer.Title
		}
		if offer.Version != "" {
			info["version"] = offer.Version
		}
	}
	return encode(map[string]any{
		"resultType": "complete", "supportedVersions": []string{mcpwire.Modern}, "capabilities": map[string]any{"tools": map[string]any{}},
		"ttlMs": 0, "cacheScope": "private", "_meta": map[string]any{mcpwire.MetaServerInfo: info},
	})
}

func (a *adapter) list(ctx context.Context) ([]byte, error) {
	offer, err := a.src.Offer(ctx)
	if err != nil {
		return nil, err
	}
	tools := make([]json.RawMessage, len(offer.Tools))
	for i, t := range offer.Tools {
		tools[i] = t.Raw
	}
	return encode(map[string]any{"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": tools}), nil
}

func (a *adapter) call(req *http.Request, m *message) (*http.Response, error) {
	var params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(m.Params, &params) != nil {
		return reply(req, http.StatusOK, fault(m.ID, mcpwire.CodeInvalidParams, "the params are not an object with name and arguments")), nil
	}
	if len(params.Arguments) == 0 {
		params.Arguments = json.RawMessage("{}")
	}
	result, err := a.src.Call(req.Context(), params.Name, params.Arguments)
	var large *TooLarge
	switch {
	case errors.Is(err, ErrUnknownTool):
		return reply(req, http.StatusOK, fault(m.ID, mcpwire.CodeInvalidParams, "the tool no longer exists")), nil
	case errors.As(err, &large):
		// The session checks the announced length of a response.
		resp := reply(req, http.StatusOK, nil)
		resp.ContentLength = math.MaxInt64
		return resp, nil
	case err != nil:
		return nil, err
	}
	return reply(req, http.StatusOK, answer(m.ID, result)), nil
}

func answer(id json.RawMessage, result []byte) []byte {
	b := make([]byte, 0, len(result)+len(id)+40)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"result":`...)
	b = append(b, result...)
	return append(b, '}')
}

func fault(id json.RawMessage, code int64, sentence string) []byte {
	b := append(append([]byte(`{"jsonrpc":"2.0","id":`), id...), ',')
	return append(mcpwire.AppendError(b, code, sentence), '}')
}

func reply(req *http.Request, status int, body []byte) *http.Response {
	return &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       req,
	}
}

// encode encodes values that always encode: maps, strings, numbers and valid JSON.
func encode(v any) []byte {
	b, _ := plainjson.Marshal(v)
	return b
}

func appendString(dst []byte, s string) []byte { return append(dst, encode(s)...) }
