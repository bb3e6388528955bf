package catalog

import (
	"maps"
	"slices"

	"github.com/callyard/callyard/pkg/schema"
)

// Announce sets what tells the other front doors which configuration is in force here.
func (c *Catalog) Announce(inForce func() []schema.InForce) { c.said.Store(&inForce) }

func (c *Catalog) own() []schema.InForce {
	if f := c.said.Load(); f != nil {
		return (*f)()
	}
	return nil
}

// Process is a live process of the fabric and the configuration that it has in force.
type Process struct {
	ID      string
	Role    string // "frontdoor" or "worker"
	InForce []schema.InForce
}

// Processes returns the live front doors and workers, this front door first.
func (c *Catalog) Processes() []Process {
	all := []Process{{c.id, "frontdoor", c.own()}}
	c.mu.RLock()
	for _, id := range slices.Sorted(maps.Keys(c.routers)) {
		if id != c.id {
			all = append(all, Process{id, "frontdoor", c.inForce[id]})
		}
	}
	c.mu.RUnlock()
	for _, w := range c.Workers() {
		all = append(all, Process{w.ID, "worker", w.InForce})
	}
	return all
}
