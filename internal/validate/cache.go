package validate

import (
	"encoding/json"
	"sync"
)

// DefaultCached is how many compiled schemas a [Cache] holds unless told otherwise.
const DefaultCached = 10_000

// Cache holds compiled schemas by the digest of the tool definition they are
// from, the newest max of them. It is safe for concurrent use; each schema is
// compiled once, also when many ask for it at the same time, and one that cannot
// be compiled is remembered as such.
type Cache struct {
	mu      sync.RWMutex
	entries map[string]*cached
	order   []string // a ring of digests, oldest at next once it is full
	next    int
	max     int
}

type cached struct {
	once   sync.Once
	schema *Schema
	err    error
}

// NewCache returns a cache of at most max schemas, of [DefaultCached] when max is
// not positive.
func NewCache(max int) *Cache {
	max = limit(max, DefaultCached)
	return &Cache{entries: make(map[string]*cached), max: max}
}

// Get returns the schema of the given digest, compiled from raw if it is not
// there yet. The digest must name raw: it is not computed again. Errors are those
// of [Compile].
func (c *Cache) Get(digest string, raw json.RawMessage) (*Schema, error) {
	c.mu.RLock()
	e := c.entries[digest]
	c.mu.RUnlock()
	if e == nil {
		e = c.add(digest)
	}
	// Outside the lock: one large schema must not hold up the calls of others.
	e.once.Do(func() { e.schema, e.err = Compile(raw) })
	return e.schema, e.err
}

// Len returns how many schemas are held.
func (c *Cache) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.entries)
}

func (c *Cache) add(digest string) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[digest]; e != nil {
		return e
	}
	e := new(cached)
	if len(c.order) < c.max {
		c.order = append(c.order, digest)
	} else {
		delete(c.entries, c.order[c.next])
		c.order[c.next] = digest
		c.next = (c.next + 1) % c.max
	}
	c.entries[digest] = e
	return e
}
