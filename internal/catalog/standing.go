package catalog

import (
	"slices"

	"github.com/callyard/callyard/internal/store/switchtable"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// standing holds the state that decides whether calls may be sent. It is immutable and replaced as
// a whole, because each call reads it.
type standing struct {
	servers map[schema.ServerID]*pinned // all servers; the value is nil except for quarantine mode
	off     map[toolName]*switchtable.Switch
	wide    []wideSwitch // switches that turn off several tools
}

// toolName identifies a tool of a server.
type toolName struct {
	server schema.ServerID
	tool   string
}

// wideSwitch turns off all tools that match its patterns and, if it names a set, are in that set.
type wideSwitch struct {
	switchtable.Switch
	// members holds the tools of the set. It is nil if the switch names no set, or if the set
	// cannot be composed: then the switch turns off more tools rather than too few.
	members map[toolName]struct{}
}

func (w *wideSwitch) matches(name toolName) bool {
	if w.members != nil {
		if _, in := w.members[name]; !in {
			return false
		}
	}
	return (w.Server == "" || risk.MatchPattern(string(w.Server), string(name.server))) && (w.Tool == "" || risk.MatchPattern(w.Tool, name.tool))
}

// switchedOff returns the switch that turns the tool off, or nil if the tool is on.
func (s *standing) switchedOff(name toolName) *switchtable.Switch {
	if sw := s.off[name]; sw != nil {
		return sw
	}
	for i := range s.wide {
		if s.wide[i].matches(name) {
			sw := s.wide[i].Switch
			sw.Server, sw.Tool = name.server, name.tool // the tool that the caller asked about
			return &sw
		}
	}
	return nil
}

// namesOff returns the names of the tools that are off.
func (s *standing) namesOff(server schema.ServerID, tools []*schema.Tool) (names []string) {
	if len(s.off) == 0 && len(s.wide) == 0 {
		return nil
	}
	for _, t := range tools {
		if s.switchedOff(toolName{server, t.Name}) != nil {
			names = append(names, t.Name)
		}
	}
	return names
}

// Standing returns nil if a call that was checked against the definition with this digest may be
// sent. tool is empty for methods that name no tool. Otherwise it returns the error that a new call
// would get: KindDisabled for a tool that is switched off or quarantined, KindNotFound for a server
// that was removed. It returns KindConflict if another accepted definition replaced the checked
// one. If it returns nil, it takes no lock and allocates no memory.
func (c *Catalog) Standing(server schema.ServerID, tool, digest string) error {
	s := c.standing.Load()
	pins, ok := s.servers[server]
	if !ok {
		c.mu.RLock()
		defer c.mu.RUnlock()
		return c.noServer(server)
	}
	if tool == "" {
		return nil
	}
	if sw := s.switchedOff(toolName{server, tool}); sw != nil {
		return switchedOff(sw)
	}
	if pins != nil && tool != "" {
		return pins.mayLeave(server, tool, digest)
	}
	return nil
}

// publishLocked replaces the state that Standing reads. The caller holds c.mu.
func (c *Catalog) publishLocked() {
	s := &standing{servers: make(map[schema.ServerID]*pinned, len(c.servers)), off: make(map[toolName]*switchtable.Switch)}
	for id, of := range c.servers {
		s.servers[id] = nil
		if of.pins != nil && of.pins.mode == schema.PinQuarantine {
			s.servers[id] = of.pins
		}
	}
	for _, sw := range c.switches.All() {
		switch {
		case sw.Enabled:
		case sw.Wide:
			s.wide = append(s.wide, wideSwitch{sw, c.Sets().membersLocked(sw.Set)})
		default:
			s.off[toolName{sw.Server, sw.Tool}] = &sw
		}
	}
	// If several match, the oldest gives the reason.
	slices.SortFunc(s.wide, func(a, b wideSwitch) int { return a.At.Compare(b.At) })
	c.standing.Store(s)
}

// switched updates the view after a tool was switched on or off by any front door.
func (c *Catalog) switched() {
	c.mu.Lock()
	c.publishLocked()
	c.mu.Unlock()
	c.changes.notify()
}

// addedChanged updates the view after a server was added over the API or removed by any front door.
// A removed server disappears at once, even while its workers are still stopping it.
func (c *Catalog) addedChanged() {
	now := make(map[schema.ServerID]struct{})
	for _, row := range c.added.All() {
		now[row.ID] = struct{}{}
	}
	c.mu.Lock()
	for id := range c.addedIDs {
		if _, ok := now[id]; !ok {
			c.removed[id] = struct{}{}
		}
	}
	for id := range now {
		delete(c.removed, id)
	}
	c.addedIDs = now
	c.rebuildLocked()
	c.mu.Unlock()
	c.wakeReader()
	c.changes.notify()
}
