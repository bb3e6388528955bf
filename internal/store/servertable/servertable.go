// Package servertable stores the servers that were added with the API. Every front door sees each write;
// the last one wins. The table is of the platform: the configuration determines which servers a
// tenant sees.
package servertable

import (
	"context"
	"encoding/json"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Server is a server that was added with the API. Definition is its entry in the format of the servers
// file.
type Server struct {
	ID         schema.ServerID `json:"id"`
	Definition json.RawMessage `json:"definition"`
	By         string          `json:"by,omitempty"`
	At         time.Time       `json:"at"`
}

// history is for people only: the table needs just the last write.
const history = 5

var spec = bus.TableSpec{Bucket: bus.BucketServers, What: "servers added over the API", History: history}

// Specs returns the specs of all tables, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{spec} }

// Open opens the table. changed is called after every change, on one goroutine.
func Open(ctx context.Context, c *bus.Conn, changed func()) (*bus.Table[Server], error) {
	return bus.OpenTable(ctx, c, spec, func(s *Server) string { return Key(s.ID) }, changed)
}

// Key returns the row key of a server.
func Key(id schema.ServerID) string { return bus.Token(id) }
