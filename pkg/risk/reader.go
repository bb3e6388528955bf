package risk

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// reader takes values out of nodes. It goes on after a fault, so that all of
// them are found.
type reader struct{ faults report }

// key is one known key of a map and what is done with its value.
type key struct {
	name string
	read func(path string, n *node)
}

// members reads a map; keys that are not known, and keys given twice, are faults.
func (r *reader) members(path string, n *node, keys ...key) {
	if !r.is(path, n, kindMap, "a map of keys") {
		return
	}
	first := map[string]position{}
	for _, m := range n.members {
		here := join(path, m.key)
		if before, twice := first[m.key]; twice {
			r.faults.add(m.at, here, "the key is given twice, first in line %d; remove one of them.", before.line)
			continue
		}
		first[m.key] = m.at
		known := false
		for _, k := range keys {
			if k.name == m.key {
				k.read(here, m.value)
				known = true
			}
		}
		if !known {
			names := make([]string, len(keys))
			for i, k := range keys {
				names[i] = k.name
			}
			r.faults.add(m.at, here, "is no key that is known here; %s", hintAt(m.key, names))
		}
	}
}

// is reports a value that is not of the kind, unless it was reported already.
func (r *reader) is(path string, n *node, want kind, wanted string) bool {
	if n.kind != want && n.kind != kindBad {
		r.faults.add(n.at, path, "must be %s, not %s.", wanted, n.kind)
	}
	return n.kind == want
}

func (r *reader) text(path string, n *node, most int) string {
	if !r.is(path, n, kindText, "a text") {
		return ""
	}
	switch {
	case strings.TrimSpace(n.text) == "":
		r.faults.add(n.at, path, "is empty; write it, or remove the key.")
	case len(n.text) > most:
		r.faults.add(n.at, path, "is longer than %d bytes; shorten it.", most)
	default:
		return n.text
	}
	return ""
}

// texts reads one text or a list of them.
func (r *reader) texts(path string, n *node) (list []string) {
	if n.kind == kindText {
		if text := r.text(path, n, maxName); text != "" {
			return []string{text}
		}
		return nil
	}
	if !r.is(path, n, kindList, "a text or a list of texts") {
		return nil
	}
	if len(n.items) == 0 {
		r.faults.add(n.at, path, "is an empty list, which nothing matches; name something, or remove the key.")
	}
	for i, item := range n.items {
		if text := r.text(fmt.Sprintf("%s[%d]", path, i), item, maxName); text != "" {
			list = append(list, text)
		}
	}
	return list
}

func (r *reader) choice(path string, n *node, words ...string) string {
	text := r.text(path, n, maxName)
	for _, word := range words {
		if text == word {
			return word
		}
	}
	if text != "" {
		r.faults.add(n.at, path, "%s is not known; %s", quote(text), hintAt(text, words))
	}
	return ""
}

func (r *reader) bool(path string, n *node) bool {
	return r.is(path, n, kindBool, "true or false") && strings.EqualFold(n.text, "true")
}

func (r *reader) number(path string, n *node, least, most int) int {
	if !r.is(path, n, kindNumber, fmt.Sprintf("a number from %d to %d", least, most)) {
		return 0
	}
	v, err := strconv.Atoi(n.text)
	if err != nil || v < least || v > most {
		r.faults.add(n.at, path, "must be a whole number from %d to %d.", least, most)
		return 0
	}
	return v
}

const day = 24 * time.Hour

func (r *reader) duration(path string, n *node, least, most time.Duration) time.Duration {
	if n.kind == kindNumber {
		r.faults.add(n.at, path, "has no unit; write it with one, such as %s.", quote("10m"))
		return 0
	}
	text := r.text(path, n, maxName)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(n) * day
	}
	switch {
	case err != nil:
		r.faults.add(n.at, path, "%s is not a duration; write a number with its unit, such as \"90s\", \"10m\", \"4h\" or \"2d\".", quote(text))
		return 0
	case d < least || d > most:
		r.faults.add(n.at, path, "must be from %s to %s.", spelled(least), spelled(most))
		return 0
	}
	return d
}

func spelled(d time.Duration) string {
	if d >= day {
		return strconv.Itoa(int(d/day)) + "d"
	}
	return d.String()
}

func join(path, key string) string {
	if key == "" || len(key) > 60 || strings.ContainsAny(key, ".[]: \t\n") {
		return path + "[" + quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
