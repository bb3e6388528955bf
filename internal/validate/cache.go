package validate

import (
	"encoding/json"
	"sync"
)

// defaultCached is the default number of compiled schemas in a [Cache].
const defaultCached = 10_000

// Cache holds compiled schemas by the digest of their tool definition, at most max of them; the
// oldest is dropped first. It is safe for concurrent use. Each schema is compiled once, also with
// concurrent callers. Schemas that cannot be compiled are cached as well.
type Cache struct {
	mu      sync.RWMutex
	entries map[string]*cached
	order   []string // a ring of digests; once full, the oldest is at next
	next    int
	max     int
}

type cached struct {
	once   sync.Once
	schema *Schema
	err    error
}

// NewCache returns a cache of at most max schemas, or of 10,000 if max is not positive.
func NewCache(max int) *Cache {
	max = limit(max, defaultCached)
	return &Cache{entries: make(map[string]*cached), max: max}
}

// Get returns the schema with the digest. If it is not cached, Get compiles raw. The digest must be
// that of raw; it is not computed again. Errors are those of [Compile].
func (c *Cache) Get(digest string, raw json.RawMessage) (*Schema, error) {
	c.mu.RLock()
	e := c.entries[digest]
	c.mu.RUnlock()
	if e == nil {
		e = c.add(digest)
	}
	// Without the lock, so that one large schema does not delay other calls.
	e.once.Do(func() { e.schema, e.err = Compile(raw) })
	return e.schema, e.err
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
