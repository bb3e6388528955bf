package trainer

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// within is the timeout of one response, the same as in the clients of OpenEnv.
const within = time.Minute

// Conn is a connection, which plays one episode at a time. It is not safe for concurrent use.
type Conn struct{ ws *websocket.Conn }

// Dial connects to a server at base, an http URL with or without an environment as its path.
func Dial(ctx context.Context, base string) (*Conn, error) {
	dialer := websocket.Dialer{HandshakeTimeout: within}
	ws, resp, err := dialer.DialContext(ctx, "ws"+strings.TrimPrefix(base, "http")+"/ws", nil)
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close() // the response to a handshake has no body
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", base, err)
	}
	return &Conn{ws}, nil
}

// Close closes the connection, and with it the episode.
func (c *Conn) Close() { _ = c.ws.Close() }

// Seen is an observation.
type Seen struct {
	Observation struct {
		Prompt string          `json:"prompt"`
		Text   string          `json:"text"`
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Type    string `json:"error_type"`
			Message string `json:"message"`
		} `json:"error"`
	} `json:"observation"`
	Reward   *float64 `json:"reward"`
	Done     bool     `json:"done"`
	Metadata struct {
		EpisodeID   string             `json:"episode_id"`
		CallID      string             `json:"call_id"`
		Masked      bool               `json:"masked"`
		FailureKind string             `json:"failure_kind"`
		Components  map[string]float64 `json:"components"`
	} `json:"metadata"`
}

// Fault is an error response of the server.
type Fault struct{ Code, Message string }

// Error returns the code and the message.
func (f *Fault) Error() string { return f.Code + ": " + f.Message }

// Reset begins an episode. data holds the fields of the reset; nil means none. The error is a
// *Fault if the server refuses it.
func (c *Conn) Reset(data map[string]any) (*Seen, error) {
	if data == nil {
		data = map[string]any{}
	}
	return c.ask("reset", data)
}

// Call makes a step that calls a tool. Errors are as for [Conn.Reset].
func (c *Conn) Call(tool string, arguments any) (*Seen, error) {
	return c.ask("step", map[string]any{"type": "call_tool", "tool_name": tool, "arguments": arguments})
}

// Say makes a step with a text of the model. Errors are as for [Conn.Reset].
func (c *Conn) Say(text string) (*Seen, error) {
	return c.ask("step", map[string]any{"type": "message", "text": text})
}

func (c *Conn) ask(kind string, data any) (*Seen, error) {
	text, err := json.Marshal(map[string]any{"type": kind, "data": data})
	if err != nil {
		return nil, err
	}
	if err := c.ws.SetReadDeadline(time.Now().Add(within)); err != nil {
		return nil, err
	}
	if err := c.ws.WriteMessage(websocket.TextMessage, text); err != nil {
		return nil, fmt.Errorf("sending: %w", err)
	}
	_, answer, err := c.ws.ReadMessage()
	if err != nil {
		return nil, fmt.Errorf("waiting for the answer: %w", err)
	}
	var m struct {
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(answer, &m); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if m.Type == "error" {
		var f Fault
		if err := json.Unmarshal(m.Data, &f); err != nil {
			return nil, fmt.Errorf("reading the error: %w", err)
		}
		return nil, &f
	}
	var seen Seen
	if err := json.Unmarshal(m.Data, &seen); err != nil {
		return nil, fmt.Errorf("reading the observation: %w", err)
	}
	return &seen, nil
}
