// Package pintable keeps which definitions of tools were accepted. A server has one row,
// so that all of its tools are recorded, and accepted, in one step: of several front doors
// that record it at once one wins. The table is of the platform: definitions of tools are
// accepted for all tenants.
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
	// Definition is the definition, exactly as the server sent it, and Digest its digest.
	Definition json.RawMessage `json:"-"`
	Digest     string          `json:"digest"`
	// By is the principal that accepted it; empty for one that was recorded at first use.
	By string    `json:"by,omitempty"`
	At time.Time `json:"at"`
}

// Server are the accepted definitions of a server, by tool.
type Server struct {
	ID       schema.ServerID `json:"id"`
	Recorded time.Time       `json:"recorded"` // at first use
	Tools    map[string]Pin  `json:"tools"`
}

// pinRow is a Pin as it is stored: the definition is a string, because an encoder of JSON
// may write an object in another way, and its digest is of the exact bytes.
type pinRow struct {
	pinMembers
	Definition string `json:"definition"`
}

type pinMembers Pin

// MarshalJSON keeps the bytes of the definition.
func (p Pin) MarshalJSON() ([]byte, error) {
	return json.Marshal(pinRow{pinMembers(p), string(p.Definition)})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (p *Pin) UnmarshalJSON(text []byte) error {
	var row pinRow
	if err := json.Unmarshal(text, &row); err != nil {
		return err
	}
	*p = Pin(row.pinMembers)
	p.Definition = json.RawMessage(row.Definition)
	return nil
}

// history is for people: the table needs the last write alone.
const history = 5

var spec = bus.TableSpec{Bucket: bus.BucketPins, What: "accepted tool definitions", History: history}

// Specs are all tables, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{spec} }

// Open opens the table. changed is called after every change, on one goroutine.
func Open(ctx context.Context, c *bus.Conn, changed func()) (*bus.Table[Server], error) {
	return bus.OpenTable(ctx, c, spec, func(s *Server) string { return Key(s.ID) }, changed)
}

// Key is the key of a server.
func Key(id schema.ServerID) string { return bus.Token(id) }
