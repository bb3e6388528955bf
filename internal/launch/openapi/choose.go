package openapi

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/config"
)

// chosen applies the filters and adds notes for those that match nothing, which usually are misspelt.
type chosen struct {
	include, exclude []config.Selector
	hit              map[string]bool
}

func (c *chosen) wants(op *operation) bool {
	in := len(c.include) == 0
	for i, s := range c.include {
		if selects(&s, op) {
			in = true
			c.mark("include", i)
		}
	}
	for i, s := range c.exclude {
		if selects(&s, op) {
			in = false
			c.mark("exclude", i)
		}
	}
	return in
}

func (c *chosen) mark(list string, i int) {
	if c.hit == nil {
		c.hit = make(map[string]bool)
	}
	c.hit[list+strconv.Itoa(i)] = true
}

func (c *chosen) hits(list string, i int) bool { return c.hit[list+strconv.Itoa(i)] }

func selects(s *config.Selector, op *operation) bool {
	some := func(list []string, match func(string) bool) bool {
		return len(list) == 0 || slices.ContainsFunc(list, match)
	}
	return some(s.Tags, func(tag string) bool { return slices.Contains(op.tags, tag) }) &&
		some(s.Methods, func(m string) bool { return strings.EqualFold(m, op.method) }) &&
		some(s.Paths, func(p string) bool { return globPath(p, op.template) }) &&
		some(s.Operations, func(p string) bool {
			ok, _ := path.Match(p, op.id) // the configuration was validated
			return ok && op.id != ""
		})
}

// globPath matches a path template. * matches within a segment, ** across segments.
func globPath(pattern, text string) bool {
	i := strings.IndexByte(pattern, '*')
	if i < 0 {
		return pattern == text
	}
	if !strings.HasPrefix(text, pattern[:i]) {
		return false
	}
	text = text[i:]
	rest, wide := strings.CutPrefix(pattern[i+1:], "*")
	most := len(text)
	if end := strings.IndexByte(text, '/'); !wide && end >= 0 {
		most = end
	}
	if strings.IndexByte(rest, '*') < 0 {
		n := len(text) - len(rest)
		return n >= 0 && n <= most && strings.HasSuffix(text, rest)
	}
	for n := 0; n <= most; n++ {
		if globPath(rest, text[n:]) {
			return true
		}
	}
	return false
}
