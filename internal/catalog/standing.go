package catalog

import (
	"github.com/callyard/callyard/internal/store/switchtable"
	"github.com/callyard/callyard/pkg/schema"
)

// standing is what decides whether calls may leave, as one value that is replaced and
// never changed: it is read for each call.
type standing struct {
	servers map[string]*pinned // that there are; nil but for those in quarantine
	off     map[toolName]switchtable.Switch
}

// toolName names a tool of a server.
type toolName struct{ server, tool string }

// Standing returns nil while calls of the tool may leave that were checked against the
// definition with the digest; tool is empty for methods that name none. Else the error is
// the one that a call gets which comes now: of KindDisabled for a tool that is switched
// off or in quarantine, of KindNotFound for a server that was removed. It is of
// KindConflict for a definition that was replaced by another accepted one. It takes no
// lock and, where it returns nil, no memory.
func (c *Catalog) Standing(server, tool, digest string) error {
	s := c.standing.Load()
	pins, ok := s.servers[server]
	if !ok {
		c.mu.RLock()
		defer c.mu.RUnlock()
		return c.noServer(server)
	}
	if sw, ok := s.off[toolName{server, tool}]; ok {
		return switchedOff(&sw)
	}
	if pins != nil && tool != "" {
		return pins.mayLeave(server, tool, digest)
	}
	return nil
}

// publishLocked replaces what Standing reads.
func (c *Catalog) publishLocked() {
	s := &standing{servers: make(map[string]*pinned, len(c.servers)), off: make(map[toolName]switchtable.Switch)}
	for id, of := range c.servers {
		s.servers[id] = nil
		if of.pins != nil && of.pins.mode == schema.PinQuarantine {
			s.servers[id] = of.pins
		}
	}
	for _, sw := range c.switches.All() {
		if !sw.Enabled {
			s.off[toolName{sw.Server, sw.Tool}] = sw
		}
	}
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
	now := make(map[string]struct{})
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
