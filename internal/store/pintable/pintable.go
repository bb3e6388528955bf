// Package pintable stores the accepted tool definitions. A server has one row, so that all of its tools
// are recorded, or accepted, in one step: only one of several front doors that record it concurrently
// succeeds. The table is of the platform: tool definitions are accepted for all tenants.
package pintable

import (
	"context"
	"encoding/json"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Pin is the accepted definition of a tool.
type Pin struct {
	// Definition is the exact definition as the server sent it, Digest its digest.
	Definition json.RawMessage `json:"-"`
	Digest     string          `json:"digest"`
	// By is the principal that accepted it, or empty if it was recorded at first use.
	By string    `json:"by,omitempty"`
	At time.Time `json:"at"`
}

// Server holds the accepted definitions of a server, by tool.
type Server struct {
	ID       schema.ServerID `json:"id"`
	Recorded time.Time       `json:"recorded"` // at first use
	Tools    map[string]Pin  `json:"tools"`
}

// pinRow is the stored form of a Pin. The definition is a string, because a JSON encoder may reformat an
// object, and the digest is of the exact bytes.
type pinRow struct {
	pinMembers
	Definition string `json:"definition"`
}

type pinMembers Pin

// MarshalJSON encodes the pin and preserves the bytes of the definition.
func (p Pin) MarshalJSON() ([]byte, error) {
	return json.Marshal(pinRow{pinMembers(p), string(p.Definition)})
}

// UnmarshalJSON decodes the output of MarshalJSON.
func (p *Pin) UnmarshalJSON(text []byte) error {
	var row pinRow
	if err := json.Unmarshal(text, &row); err != nil {
		return err
	}
	*p = Pin(row.pinMembers)
	p.Definition = json.RawMessage(row.Definition)
	return nil
}

// history is for people only: the table needs just the last write.
const history = 5

var spec = bus.TableSpec{Bucket: bus.BucketPins, What: "accepted tool definitions", History: history}

// Specs returns the specs of all tables, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{spec} }

// Open opens the table. changed is called after every change, on one goroutine.
func Open(ctx context.Context, c *bus.Conn, changed func()) (*bus.Table[Server], error) {
	return bus.OpenTable(ctx, c, spec, func(s *Server) string { return Key(s.ID) }, changed)
}

// Key returns the row key of a server.
func Key(id schema.ServerID) string { return bus.Token(id) }
