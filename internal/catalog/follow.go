package catalog

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/store/switchtable"
	"github.com/callyard/callyard/pkg/schema"
)

// ChangeType is the type of a [FleetChange].
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

// FleetChange is one change in the fleet.
type FleetChange struct {
	Type   ChangeType
	At     time.Time
	Server schema.ServerID // the server, or the server of the tool
	Tool   string
	Set    string
	Tenant schema.TenantID // the owner of the set; see [Set]
	Actor  string          // the principal that enabled, disabled or stored it; "" if there is none
	Reason string          // the reason why it is disabled or offline
}

// Follower returns the changes since the last request. It is not safe for concurrent use.
type Follower struct {
	c    *Catalog
	last followed
}

// followed is the state that a follower compares.
type followed struct {
	servers map[schema.ServerID]string // the reason why each is offline; "" means online
	tools   map[toolName]followedTool
	sets    map[setName]setState
}

// setName is the key of a set of a tenant. setState is the state that differs after each change.
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

// Follow returns a follower that starts from the current state.
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

// Next returns the changes since the last call, sorted by set, server and tool. It does not report
// a tool that was removed and added again in between.
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

// Watch calls f with each change from now on, always on the same goroutine. stop ends the watch and
// waits for f to return. Changes within a few milliseconds may be reported together.
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
