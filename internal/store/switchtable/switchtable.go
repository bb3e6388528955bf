// Package switchtable stores which tools are disabled. Every front door sees each write; the last one
// wins. The table is of the platform: a tool is disabled for all tenants.
package switchtable

import (
	"context"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Switch enables or disables tools, with a reason.
type Switch struct {
	// Server and Tool identify one tool. In a row with Wide they are name patterns; "" matches every
	// name.
	Server schema.ServerID `json:"server"`
	Tool   string          `json:"tool"`
	// Wide is set if the row applies to all matching tools.
	Wide bool `json:"wide,omitempty"`
	// Set limits a row with Wide to the tools of a set.
	Set     string    `json:"set,omitempty"`
	Enabled bool      `json:"enabled"`
	Reason  string    `json:"reason,omitempty"`
	By      string    `json:"by,omitempty"`
	At      time.Time `json:"at"`
}

// history is for people only: the table needs just the last write.
const history = 5

var spec = bus.TableSpec{Bucket: bus.BucketSwitches, What: "disabled tools", History: history}

// Specs returns the specs of all tables, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{spec} }

// Open opens the table. changed is called after every change, on one goroutine.
func Open(ctx context.Context, c *bus.Conn, changed func()) (*bus.Table[Switch], error) {
	return bus.OpenTable(ctx, c, spec, func(s *Switch) string { return s.key() }, changed)
}

// key returns the row key. Rows with Wide have three parts, so that a pattern cannot collide with a tool.
func (s *Switch) key() string {
	if s.Wide {
		return Key(s.Server, s.Tool) + "." + bus.Token(s.Set)
	}
	return Key(s.Server, s.Tool)
}

// Key returns the row key of a tool.
func Key(server schema.ServerID, tool string) string {
	return bus.Token(server) + "." + bus.Token(tool)
}
