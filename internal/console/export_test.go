package console

import "time"

// Back returns the page to redirect to.
func Back(text string) string { return returnPage(text) }

// Pretty returns indented JSON.
func Pretty(raw string) string { return string(pretty([]byte(raw))) }

// Copies returns a call as commands and programs.
func Copies(frontDoor, server, tool, arguments string) (all []string) {
	for _, c := range copiesOf(frontDoor, server, tool, arguments, false) {
		all = append(all, c.Text)
	}
	return all
}

// Cache is a cache of answers of the front door.
type Cache struct{ c *cache }

// NewCache returns a cache with a clock.
func NewCache(now func() time.Time) Cache { return Cache{newCache(now)} }

// Ask calls ask unless the answer is cached.
func (c Cache) Ask(of string, ask func()) {
	_, _ = cached(c.c, Visit{}, of, func() (int, error) { ask(); return 0, nil })
}

// Len returns the number of cached answers.
func (c Cache) Len() int { return len(c.c.by) }
