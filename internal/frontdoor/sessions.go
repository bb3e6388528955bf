package frontdoor

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/frontdoor/mcp"
	"github.com/callyard/callyard/internal/store/sessiontable"
)

// sessionsWithin is the timeout of opening the table of MCP sessions.
const sessionsWithin = 10 * time.Second

// openSessions makes the sessions of MCP clients survive the end of this front door. If their
// table cannot be opened, because it was not created or NATS does not permit it yet, each session
// exists at one front door only.
func openSessions(o Options, endpoint *mcp.Endpoint) *sessiontable.Table {
	ctx, cancel := context.WithTimeout(context.Background(), sessionsWithin)
	defer cancel()
	table, err := sessiontable.Open(ctx, o.Conn, endpoint.SessionChanged)
	if err != nil {
		o.Log.Warn("MCP sessions are not shared with other front doors, and end with this one: run `callyard init`, and update NATS to the permissions of this version", "error", err)
		return nil
	}
	endpoint.ShareSessions(table)
	return table
}
