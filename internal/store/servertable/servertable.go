// Package servertable keeps the servers that were added over the API. Every front door
// sees each write; the last one counts. The table is of the platform: which servers a tenant
// sees is in the configuration.
package servertable

import (
	"context"
	"encoding/json"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Server is a server that was added over the API. Definition is its entry in the shape of
// the servers file.
type Server struct {
	ID         schema.ServerID `json:"id"`
	Definition json.RawMessage `json:"definition"`
	By         string          `json:"by,omitempty"`
	At         time.Time       `json:"at"`
}

// history is for people: the table needs the last write alone.
const history = 5

var spec = bus.TableSpec{Bucket: bus.BucketServers, What: "servers added over the API", History: history}

// Specs are all tables, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{spec} }

// Open opens the table. changed is called after every change, on one goroutine.
func Open(ctx context.Context, c *bus.Conn, changed func()) (*bus.Table[Server], error) {
	return bus.OpenTable(ctx, c, spec, func(s *Server) string { return Key(s.ID) }, changed)
}

// Key is the key of a server.
func Key(id schema.ServerID) string { return bus.Token(id) }
