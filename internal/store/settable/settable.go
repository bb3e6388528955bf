// Package settable keeps the sets of tools that were made over the API. Every front door
// sees each write; a change names the revision that it changes, so none is lost. The table is
// of the platform: its operators make sets, for all tenants.
package settable

import (
	"context"
	"encoding/json"
	"time"

	"github.com/callyard/callyard/pkg/bus"
)

// Set is a set that was made over the API. Definition is an internal/toolset.Set as JSON.
type Set struct {
	Name       string          `json:"name"`
	Definition json.RawMessage `json:"definition"`
	By         string          `json:"by,omitempty"`
	At         time.Time       `json:"at"`
}

// history is for people: the table needs the last write alone.
const history = 5

var spec = bus.TableSpec{Bucket: bus.BucketSets, What: "sets of tools", History: history}

// Specs are all tables, for [bus.Provision].
func Specs() []bus.TableSpec { return []bus.TableSpec{spec} }

// Open opens the table. changed is called after every change, on one goroutine.
func Open(ctx context.Context, c *bus.Conn, changed func()) (*bus.Table[Set], error) {
	return bus.OpenTable(ctx, c, spec, func(s *Set) string { return Key(s.Name) }, changed)
}

// Key is the key of a set.
func Key(name string) string { return bus.Token(name) }
