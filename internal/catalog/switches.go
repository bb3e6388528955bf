package catalog

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/store/switchtable"
	"github.com/callyard/callyard/pkg/schema"
)

// Switches is the part of the catalog that turns tools off and on. It is safe for
// concurrent use.
type Switches struct{ c *Catalog }

// Switches returns the part of the catalog that turns tools off and on.
func (c *Catalog) Switches() Switches { return Switches{c} }

// Switch turns a tool off or on, for all front doors and over restarts. reason
// is shown to callers.
func (c *Catalog) Switch(ctx context.Context, id schema.ServerID, name string, enabled bool, reason, by string) (Tool, error) {
	t, err := c.Tool(id, name)
	if err != nil {
		return Tool{}, err
	}
	sw := switchtable.Switch{Server: id, Tool: name, Enabled: enabled, Reason: reason, By: by, At: time.Now().UTC()}
	if err := c.Switches().put(ctx, sw); err != nil {
		return Tool{}, err
	}
	t.Switch = sw
	return t, nil
}

// Many turns all tools off or on that fit: server and tool are patterns of names, ""
// for every name, and set, unless it is "", limits them to the tools of a set of the installation. Tools that
// come later count too. Turning on undoes what was turned off with the same patterns and
// set, and nothing else: a tool is on when no switch turns it off. It returns how many
// tools fit now. Errors: KindNotFound for a set that is not there, or for a switch to turn
// on that is not there; KindUnavailable where the change could not be stored.
func (s Switches) Many(ctx context.Context, server schema.ServerID, tool, set string, enabled bool, reason, by string) (sw switchtable.Switch, fits int, err error) {
	sw = switchtable.Switch{Server: server, Tool: tool, Set: set, Wide: true, Enabled: enabled, Reason: reason, By: by, At: time.Now().UTC()}
	c := s.c
	same := func(other switchtable.Switch) bool {
		return other.Server == server && other.Tool == tool && other.Set == set
	}
	if enabled && !slices.ContainsFunc(s.List(), same) {
		return sw, 0, schema.Errorf(schema.KindNotFound, "No tools are disabled by exactly this server, tool and set. GET /tools/switches lists what is disabled.")
	}
	if set != "" && !enabled {
		if _, err := c.Sets().Owned(schema.DefaultTenant, set); err != nil {
			return sw, 0, err
		}
	}
	if err := s.put(ctx, sw); err != nil {
		return sw, 0, err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	w := wideSwitch{sw, c.Sets().membersLocked(set)}
	for id, of := range c.servers {
		if of.defs == nil {
			continue
		}
		for _, t := range of.defs.order {
			if w.fits(toolName{id, t.Name}) {
				fits++
			}
		}
	}
	return sw, fits, nil
}

func (s Switches) put(ctx context.Context, sw switchtable.Switch) error {
	if err := s.c.switches.Put(ctx, sw); err != nil {
		return notStored("change", err)
	}
	s.c.switched()
	return nil
}

// notStored is the error of a change that a table did not take: nothing changed, and it may
// be sent again. what names the change.
func notStored(what string, err error) error {
	return schema.Errorf(schema.KindUnavailable, "The %s could not be stored, so nothing changed: %w", what, err).RetryableAfter(time.Second)
}

// List returns what is turned off: tools, and patterns and sets of tools.
func (s Switches) List() []switchtable.Switch {
	all := slices.DeleteFunc(s.c.switches.All(), func(sw switchtable.Switch) bool { return sw.Enabled })
	slices.SortFunc(all, func(a, b switchtable.Switch) int {
		return cmp.Or(strings.Compare(string(a.Server), string(b.Server)), strings.Compare(a.Tool, b.Tool), strings.Compare(a.Set, b.Set))
	})
	return all
}

// enabledBy returns who enabled the tool last, "" where nobody did.
func (s Switches) enabledBy(name toolName) string {
	var last switchtable.Switch
	for _, sw := range s.c.switches.All() {
		w := wideSwitch{Switch: sw}
		fits := !sw.Wide && sw.Server == name.server && sw.Tool == name.tool || sw.Wide && w.fits(name)
		if sw.Enabled && fits && sw.At.After(last.At) {
			last = sw
		}
	}
	return last.By
}
