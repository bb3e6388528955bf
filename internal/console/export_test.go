package console

import "time"

// Back is the page that somebody is led to.
func Back(text string) string { return back(text) }

// Pretty is JSON with line breaks.
func Pretty(raw string) string { return string(pretty([]byte(raw))) }

// Copies are the commands and programs of a call.
func Copies(frontDoor, server, tool, arguments string) (all []string) {
	for _, c := range copiesOf(frontDoor, server, tool, arguments, false) {
		all = append(all, c.Text)
	}
	return all
}

// Cache keeps answers of the front door.
type Cache struct{ c *cache }

// NewCache returns a cache with a clock.
func NewCache(now func() time.Time) Cache { return Cache{newCache(now)} }

// Ask asks a question unless there is an answer.
func (c Cache) Ask(of string, ask func()) {
	_, _ = cached(c.c, Visit{}, of, func() (int, error) { ask(); return 0, nil })
}

// Len is the number of answers.
func (c Cache) Len() int { return len(c.c.by) }
