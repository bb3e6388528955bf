// Package adapt makes a server out of something that speaks no MCP: a [Source]
// says which tools there are and runs one, and [Client] is an HTTP client whose
// other end is that source, inside this process. Sessions talk streamable HTTP
// through it as they do to any remote server, so that health, definitions,
// timeouts and cancellation need no second way.
//
// It promises that arguments reach the source, and results the session, as the
// bytes that they are; that a request which fails while it is sent fails here in
// the same words; and that nothing is tried twice.
//
// It refuses everything of MCP but tools.
package adapt

import (
	"context"
	"encoding/json"
	"fmt"
)

// Address is what a session takes for the address of a server that is adapted
// here. It leads nowhere.
const Address = "http://adapted.invalid/mcp"

// Source is what is adapted. Its methods are safe for concurrent use.
type Source interface {
	// Offer returns what there is now. The error is a *schema.Error.
	Offer(ctx context.Context) (*Offer, error)
	// Call runs a tool with a JSON object of arguments and returns a CallToolResult.
	// Other errors than [ErrUnknownTool] and [*TooLarge] are those of an HTTP client:
	// the context tells whether a connection was made, by its httptrace.
	Call(ctx context.Context, tool string, arguments json.RawMessage) ([]byte, error)
	// CloseIdle ends connections that nobody uses.
	CloseIdle()
}

// Offer is what a source has. It is not changed once it was returned.
type Offer struct {
	Title   string // what it calls itself; may be empty
	Version string
	Tools   []Tool
	// Notes say what was left out, and why, one sentence each. They hold no secrets.
	Notes []string
}

// Tool is one tool of an offer.
type Tool struct {
	Name string
	From string          // what it is there, such as "GET /pets"
	Raw  json.RawMessage // its definition
}

// ErrUnknownTool says that a source has no such tool.
var ErrUnknownTool = fmt.Errorf("the tool does not exist")

// TooLarge says that an answer is over the limit.
type TooLarge struct{ Limit int }

// Error says so.
func (e *TooLarge) Error() string {
	return fmt.Sprintf("the answer exceeds the limit of %d bytes", e.Limit)
}
