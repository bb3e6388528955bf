// Package switchtable keeps which tools are switched off. Every front door sees each
// write; the last one counts. The table is of the platform: a tool is switched off for all
// tenants.
package switchtable

import (
	"context"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Switch says whether tools may be called, and why not.
type Switch struct {
	// Server and Tool name one tool. In a row with Wide they are patterns of names, "" for
	// every name.
	Server schema.ServerID `json:"server"`
	Tool   string          `json:"tool"`
	// Wide says that the row is about all tools that fit.
	Wide bool `json:"wide,omitempty"`
	// Set limits a row with Wide to the tools of a set.
	Set     string    `json:"set,omitempty"`
	Enabled bool      `json:"enabled"`
	Reason  string    `json:"reason,omitempty"`
	By      string    `json:"by,omitempty"`
	At      time.Time `json:"at"`
}

// history is for people: the table needs the last write alone.
const history = 5

var spec = bus.TableSpec{Bucket: bus.BucketSwitches, What: "disabled tools", History: history}

// Specs are all tables, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{spec} }

// Open opens the table. changed is called after every change, on one goroutine.
func Open(ctx context.Context, c *bus.Conn, changed func()) (*bus.Table[Switch], error) {
	return bus.OpenTable(ctx, c, spec, func(s *Switch) string { return s.key() }, changed)
}

// key is the key of a row. Rows with Wide have three parts, so that a pattern is no tool.
func (s *Switch) key() string {
	if s.Wide {
		return Key(s.Server, s.Tool) + "." + bus.Token(s.Set)
	}
	return Key(s.Server, s.Tool)
}

// Key is the key of a tool.
func Key(server schema.ServerID, tool string) string {
	return bus.Token(server) + "." + bus.Token(tool)
}
