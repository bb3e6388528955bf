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

// Switches turns tools off and on. It is safe for concurrent use.
type Switches struct{ c *Catalog }

// Switches returns the part of the catalog that turns tools off and on.
func (c *Catalog) Switches() Switches { return Switches{c} }

// Switch turns a tool off or on for all front doors; the switch survives restarts. reason is shown
// to callers.
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

// Many turns off or on all tools that match, including tools that are added later. server and tool
// are name patterns; "" matches every name. If set is not empty, it limits the match to the tools
// of that set of the installation. Turning on removes only the switch with the same patterns and
// set: a tool is on if no switch turns it off. fits is the number of tools that match now. Errors:
// KindNotFound for an unknown set, or if there is no such switch to turn on; KindUnavailable if the
// change could not be stored.
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
			if w.matches(toolName{id, t.Name}) {
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

// notStored returns the error of a change that could not be stored. The change had no effect and
// may be sent again. what names the change.
func notStored(what string, err error) error {
	return schema.Errorf(schema.KindUnavailable, "The %s could not be stored, so nothing changed: %w", what, err).RetryableAfter(time.Second)
}

// List returns the switches that turn tools off: single tools, patterns and sets.
func (s Switches) List() []switchtable.Switch {
	all := slices.DeleteFunc(s.c.switches.All(), func(sw switchtable.Switch) bool { return sw.Enabled })
	slices.SortFunc(all, func(a, b switchtable.Switch) int {
		return cmp.Or(strings.Compare(string(a.Server), string(b.Server)), strings.Compare(a.Tool, b.Tool), strings.Compare(a.Set, b.Set))
	})
	return all
}

// enabledBy returns the principal that last enabled the tool, or "" if there is none.
func (s Switches) enabledBy(name toolName) string {
	var last switchtable.Switch
	for _, sw := range s.c.switches.All() {
		w := wideSwitch{Switch: sw}
		fits := !sw.Wide && sw.Server == name.server && sw.Tool == name.tool || sw.Wide && w.matches(name)
		if sw.Enabled && fits && sw.At.After(last.At) {
			last = sw
		}
	}
	return last.By
}
