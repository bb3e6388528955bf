package frontdoor

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/frontdoor/mcpface"
	"github.com/callyard/callyard/pkg/bus"
)

// sessionsWithin bounds the opening of the table of MCP sessions.
const sessionsWithin = 10 * time.Second

// openSessions has the sessions of MCP clients outlive this front door. Where their table
// cannot be opened, because it was not made or NATS does not permit it yet, sessions live
// at one front door, as before there was a table.
func openSessions(o Options, face *mcpface.Face) *bus.Sessions {
	ctx, cancel := context.WithTimeout(context.Background(), sessionsWithin)
	defer cancel()
	table, err := bus.OpenSessions(ctx, o.Conn, face.SessionChanged)
	if err != nil {
		o.Log.Warn("MCP sessions end with this front door and are not known to others: run `callyard init`, and give NATS the permissions of this version", "error", err)
		return nil
	}
	face.ShareSessions(table)
	return table
}
