package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/store/pintable"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// States of a [PinnedTool].
const (
	PinAccepted = "accepted" // the current definition is the accepted one
	PinChanged  = "changed"  // the current definition differs from the accepted one
	PinNew      = "new"      // no definition of the tool has been accepted
	PinGone     = "gone"     // the server no longer lists the tool
)

// Pins holds the accepted and the current definitions of a server.
type Pins struct {
	Server schema.ServerID
	// Mode is schema.PinWarn or PinQuarantine.
	Mode string
	// Recorded is the time at which the definitions were first recorded. Zero means never.
	Recorded time.Time
	Tools    []PinnedTool // sorted by name
}

// PinnedTool is one tool of [Pins].
type PinnedTool struct {
	Name   string
	State  string
	Fields []string // the members that differ in a changed tool; see [Change]
	// Accepted is nil for a new tool. Digest and Definition are those of the current
	// definition. Both are empty if the server no longer lists the tool.
	Accepted   *pintable.Pin
	Digest     string
	Definition json.RawMessage
}

// Acceptance accepts the definition of a tool that has the given digest.
type Acceptance struct{ Tool, Digest string }

// acceptTries limits the attempts to store an acceptance that conflicts with concurrent ones.
const acceptTries = 10

// Pins returns the accepted and the current definitions of a server's tools. Errors: KindNotFound
// for an unknown server, KindConflict for a server without pin, KindUnavailable while its tools are
// not known.
func (c *Catalog) Pins(id schema.ServerID) (Pins, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s, err := pinnedServer(c, id)
	if err != nil {
		return Pins{}, err
	}
	out := Pins{Server: id, Mode: s.pins.mode}
	var row pintable.Server
	if table := c.pins.Load(); table != nil {
		row, _ = table.Get(pintable.Key(id))
	}
	out.Recorded = row.Recorded
	for _, t := range s.defs.order {
		item := PinnedTool{Name: t.Name, State: PinNew, Digest: t.Digest, Definition: t.Raw}
		if pin, ok := row.Tools[t.Name]; ok {
			item.State, item.Accepted = PinAccepted, &pin
			if pin.Digest != t.Digest {
				item.State, item.Fields = PinChanged, differing(pin.Definition, t.Raw)
			}
		}
		out.Tools = append(out.Tools, item)
	}
	for name, pin := range row.Tools {
		if s.defs.tools[name] == nil {
			out.Tools = append(out.Tools, PinnedTool{Name: name, State: PinGone, Accepted: &pin})
		}
	}
	slices.SortFunc(out.Tools, func(a, b PinnedTool) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// pinnedServer returns a server that has pin set and whose tools are known. The caller holds c.mu.
func pinnedServer(c *Catalog, id schema.ServerID) (*server, error) {
	s, err := c.known(id)
	if err != nil {
		return nil, err
	}
	if s.pins == nil {
		return nil, schema.Errorf(schema.KindConflict, "Definitions of server %q are not pinned. Set \"pin\": \"warn\" or \"quarantine\" in its entry of the servers file.", id)
	}
	return s, nil
}

// Accepted returns the digests of the accepted definitions of a server, by tool, even while the
// server's tools are not known. It returns nil if the server is unknown, has no pin, or has no
// recorded definitions.
func (o Operator) Accepted(id schema.ServerID) map[string]string {
	c := o.c
	c.mu.RLock()
	defer c.mu.RUnlock()
	s, table := c.servers[id], c.pins.Load()
	if s == nil || s.view.PinMode == "" || table == nil {
		return nil
	}
	row, _ := table.Get(pintable.Key(id))
	var digests map[string]string
	for tool, pin := range row.Tools {
		if digests == nil {
			digests = make(map[string]string, len(row.Tools))
		}
		digests[tool] = pin.Digest
	}
	return digests
}

// Accept accepts definitions of tools for all front doors, either all of them or none. by is the
// principal. The error is of KindConflict if the current definition of a tool no longer has the given
// digest. Other errors are those of [Catalog.Pins].
func (o Operator) Accept(ctx context.Context, id schema.ServerID, all []Acceptance, by string) error {
	c := o.c
	unstored := func(err error) error { return notStored("acceptance", err) }
	for range acceptTries {
		now, err := acceptable(c, id, all)
		if err != nil {
			return err
		}
		table := c.pins.Load()
		if table == nil {
			return unstored(errors.New("the table of accepted definitions cannot be read"))
		}
		row, revision, err := table.Fresh(ctx, pintable.Key(id))
		if errors.Is(err, bus.ErrNotFound) {
			return unstored(errors.New("the definitions of the server are not recorded yet"))
		}
		if err != nil {
			return unstored(err)
		}
		changed := false
		row.Tools = maps.Clone(row.Tools)
		if row.Tools == nil {
			row.Tools = make(map[string]pintable.Pin, len(now))
		}
		for _, a := range all {
			if row.Tools[a.Tool].Digest != a.Digest {
				row.Tools[a.Tool] = pintable.Pin{Definition: now[a.Tool], Digest: a.Digest, By: by, At: time.Now().UTC()}
				changed = true
			}
		}
		if changed {
			if err := checkRowSize(c, &row); err != nil {
				return err
			}
			if _, err = table.Replace(ctx, row, revision); errors.Is(err, bus.ErrConflict) {
				continue
			}
			if err != nil {
				return unstored(err)
			}
		}
		c.pinsChanged()
		return nil
	}
	return unstored(bus.ErrConflict)
}

// acceptable returns the current definitions of the tools. Each must have the given digest.
func acceptable(c *Catalog, id schema.ServerID, all []Acceptance) (map[string]json.RawMessage, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s, err := pinnedServer(c, id)
	if err != nil {
		return nil, err
	}
	now := make(map[string]json.RawMessage, len(all))
	for _, a := range all {
		t := s.defs.tools[a.Tool]
		if t == nil {
			return nil, schema.Errorf(schema.KindNotFound, "Server %q has no tool %q, so nothing was accepted.", id, a.Tool)
		}
		if t.Digest != a.Digest {
			return nil, schema.Errorf(schema.KindConflict, "Tool %q of server %q does not have the definition with this digest any more, so nothing was accepted. Review it again with `callyard tools diff`.", a.Tool, id)
		}
		now[a.Tool] = t.Raw
	}
	return now, nil
}
