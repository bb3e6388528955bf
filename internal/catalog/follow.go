package catalog

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/store/switchtable"
	"github.com/callyard/callyard/pkg/schema"
)

// ChangeType says what became different.
type ChangeType string

// The types of changes.
const (
	ToolAdded     ChangeType = "tool.added"
	ToolRemoved   ChangeType = "tool.removed"
	ToolChanged   ChangeType = "tool.changed"
	ToolEnabled   ChangeType = "tool.enabled"
	ToolDisabled  ChangeType = "tool.disabled"
	ServerAdded   ChangeType = "server.added"
	ServerRemoved ChangeType = "server.removed"
	ServerOnline  ChangeType = "server.online"
	ServerOffline ChangeType = "server.offline"
	SetAdded      ChangeType = "set.added"
	SetRemoved    ChangeType = "set.removed"
	SetChanged    ChangeType = "set.changed"
)

// FleetChange is one thing that became different in the fleet.
type FleetChange struct {
	Type   ChangeType
	At     time.Time
	Server schema.ServerID // of the server or the tool
	Tool   string
	Set    string
	Tenant schema.TenantID // whose set it is; see [Set]
	Actor  string          // who enabled, disabled or stored it; "" where nobody did
	Reason string          // why it is disabled or offline
}

// Follower tells what has changed since it was asked last. It is for one goroutine.
type Follower struct {
	c    *Catalog
	last followed
}

// followed is what a follower compares.
type followed struct {
	servers map[schema.ServerID]string // why it is offline, "" where it is not
	tools   map[toolName]followedTool
	sets    map[setName]setState
}

// setName names a set of a tenant, and setState is what a change of it changes.
type (
	setName struct {
		tenant schema.TenantID
		name   string
	}
	setState struct {
		revision uint64
		by       string
	}
)

type followedTool struct {
	digest string
	off    *switchtable.Switch
}

// Follow returns a follower that begins with the present.
func (c *Catalog) Follow() *Follower { return &Follower{c: c, last: follow(c)} }

func follow(c *Catalog) followed {
	now := followed{servers: make(map[schema.ServerID]string), tools: make(map[toolName]followedTool), sets: c.Sets().states()}
	c.mu.RLock()
	defer c.mu.RUnlock()
	stands := c.standing.Load()
	for id, s := range c.servers {
		now.servers[id] = s.view.Offline
		if s.defs == nil {
			continue
		}
		for _, t := range s.defs.order {
			name := toolName{id, t.Name}
			now.tools[name] = followedTool{t.Digest, stands.switchedOff(name)}
		}
	}
	return now
}

// Next returns what has changed, in the order of servers and tools. Of a tool that was
// removed and added again in between, it tells nothing.
func (f *Follower) Next() []FleetChange {
	before, now := f.last, follow(f.c)
	f.last = now
	var all []FleetChange
	for id, why := range now.servers {
		was, known := before.servers[id]
		switch {
		case !known:
			all = append(all, FleetChange{Type: ServerAdded, Server: id})
			if why != "" {
				all = append(all, FleetChange{Type: ServerOffline, Server: id, Reason: why})
			}
		case was == "" && why != "":
			all = append(all, FleetChange{Type: ServerOffline, Server: id, Reason: why})
		case was != "" && why == "":
			all = append(all, FleetChange{Type: ServerOnline, Server: id})
		}
	}
	for id := range before.servers {
		if _, known := now.servers[id]; !known {
			all = append(all, FleetChange{Type: ServerRemoved, Server: id})
		}
	}
	for name, t := range now.tools {
		of := FleetChange{Server: name.server, Tool: name.tool}
		was, known := before.tools[name]
		switch {
		case !known:
			of.Type = ToolAdded
			all = append(all, of)
		case was.digest != t.digest:
			of.Type = ToolChanged
			all = append(all, of)
		}
		switch {
		case was.off == nil && t.off != nil:
			of.Type, of.Actor, of.Reason = ToolDisabled, t.off.By, t.off.Reason
			all = append(all, of)
		case was.off != nil && t.off == nil:
			of.Type, of.Actor = ToolEnabled, f.c.Switches().enabledBy(name)
			all = append(all, of)
		}
	}
	for name := range before.tools {
		if _, known := now.tools[name]; !known {
			all = append(all, FleetChange{Type: ToolRemoved, Server: name.server, Tool: name.tool})
		}
	}
	for name, s := range now.sets {
		was, known := before.sets[name]
		switch {
		case !known:
			all = append(all, FleetChange{Type: SetAdded, Set: name.name, Tenant: name.tenant, Actor: s.by})
		case was.revision != s.revision:
			all = append(all, FleetChange{Type: SetChanged, Set: name.name, Tenant: name.tenant, Actor: s.by})
		}
	}
	for name := range before.sets {
		if _, known := now.sets[name]; !known {
			all = append(all, FleetChange{Type: SetRemoved, Set: name.name, Tenant: name.tenant})
		}
	}
	at := time.Now().UTC()
	for i := range all {
		all[i].At = at
	}
	slices.SortFunc(all, func(a, b FleetChange) int {
		return cmp.Or(strings.Compare(a.Set, b.Set), strings.Compare(string(a.Tenant), string(b.Tenant)), strings.Compare(string(a.Server), string(b.Server)), strings.Compare(a.Tool, b.Tool), strings.Compare(string(a.Type), string(b.Type)))
	})
	return all
}

// Watch calls f with each change from now on, on one goroutine, until stop is called, which
// waits for f. Changes that come within some milliseconds may be told together.
func (c *Catalog) Watch(f func(FleetChange)) (stop func()) {
	changes, cancel := c.Changes()
	follower := c.Follow()
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				return
			case <-changes:
				for _, change := range follower.Next() {
					f(change)
				}
			}
		}
	}()
	return func() {
		cancel()
		close(end)
		<-done
	}
}
