package attach

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/coder/websocket"
)

// Dial opens a WebSocket connection to an MCP server at url, which is ws:// or wss://, and offers
// the subprotocol "mcp". A server that selects none is accepted, since it may not support
// subprotocols. client makes the request that is upgraded, with its headers and its rules for
// addresses and redirects; see launch.HTTPClient. ctx limits the attempt, not the connection.
//
// The errors complete a sentence about the server and wrap those of client.
func Dial(ctx context.Context, client *http.Client, url string, o Options) (*Conn, error) {
	c := newConn(&o)
	ws, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{ //nolint:bodyclose // the library closes it
		HTTPClient:     client,
		Subprotocols:   []string{Subprotocol},
		OnPingReceived: func(context.Context, []byte) bool { c.hear(); return true },
		OnPongReceived: func(context.Context, []byte) { c.hear() },
	})
	switch {
	case err == nil:
	case resp == nil:
		return nil, err
	case resp.StatusCode != http.StatusSwitchingProtocols:
		return nil, fmt.Errorf("it answered the WebSocket upgrade with HTTP %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	default:
		return nil, errors.New("its answer is not a WebSocket upgrade, or selects a subprotocol that was not offered")
	}
	ws.SetReadLimit(int64(o.MaxMessage))
	c.ws = ws
	return c, nil
}
