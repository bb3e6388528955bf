package catalog

import (
	"slices"

	"github.com/callyard/callyard/internal/store/switchtable"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// standing is what decides whether calls may leave, as one value that is replaced and
// never changed: it is read for each call.
type standing struct {
	servers map[schema.ServerID]*pinned // that there are; nil but for those in quarantine
	off     map[toolName]*switchtable.Switch
	wide    []wideSwitch // of many tools at once, all of them off
}

// toolName names a tool of a server.
type toolName struct {
	server schema.ServerID
	tool   string
}

// wideSwitch turns off all tools that fit its patterns and, where it names a set, are in that.
type wideSwitch struct {
	switchtable.Switch
	// members are those of its set; nil where it names none, or where that cannot be
	// composed: rather more is off than a tool is on that must not be.
	members map[toolName]struct{}
}

func (w *wideSwitch) fits(name toolName) bool {
	if w.members != nil {
		if _, in := w.members[name]; !in {
			return false
		}
	}
	return (w.Server == "" || risk.MatchPattern(string(w.Server), string(name.server))) && (w.Tool == "" || risk.MatchPattern(w.Tool, name.tool))
}

// switchedOff returns the switch by which the tool is off, nil where it is on.
func (s *standing) switchedOff(name toolName) *switchtable.Switch {
	if sw := s.off[name]; sw != nil {
		return sw
	}
	for i := range s.wide {
		if s.wide[i].fits(name) {
			sw := s.wide[i].Switch
			sw.Server, sw.Tool = name.server, name.tool // which the caller asked about
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

// Standing returns nil while calls of the tool may leave that were checked against the
// definition with the digest; tool is empty for methods that name none. Else the error is
// the one that a call gets which comes now: of KindDisabled for a tool that is switched
// off or in quarantine, of KindNotFound for a server that was removed. It is of
// KindConflict for a definition that was replaced by another accepted one. It takes no
// lock and, where it returns nil, no memory.
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

// publishLocked replaces what Standing reads.
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
	// Of several the oldest says why.
	slices.SortFunc(s.wide, func(a, b wideSwitch) int { return a.At.Compare(b.At) })
	c.standing.Store(s)
}

// switched takes in that a tool was switched on or off, here or elsewhere.
func (c *Catalog) switched() {
	c.mu.Lock()
	c.publishLocked()
	c.mu.Unlock()
	c.changes.notify()
}

// addedChanged takes in that a server was added over the API or removed, here or
// elsewhere. One that was removed is gone at once, while its workers still end it.
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
	c.awaken()
	c.changes.notify()
}
