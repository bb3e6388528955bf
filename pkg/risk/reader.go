package risk

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

// reader reads values from nodes. It continues after a fault, to find all of them.
type reader struct{ faults report }

// key is a known key of a map and the function that reads its value.
type key struct {
	name string
	read func(path string, n *yamldoc.Node)
}

// members reads a map. Unknown keys and duplicate keys are faults.
func (r *reader) members(path string, n *yamldoc.Node, keys ...key) {
	if !r.is(path, n, yamldoc.Map, "a map of keys") {
		return
	}
	first := map[string]yamldoc.Position{}
	for _, m := range n.Members {
		here := join(path, m.Key)
		if before, twice := first[m.Key]; twice {
			r.faults.add(m.At, here, "the key occurs twice, first in line %d; remove one of them.", before.Line)
			continue
		}
		first[m.Key] = m.At
		if m.Value.Kind == yamldoc.Null { // report the position of the key
			m.Value.At = m.At
		}
		known := false
		for _, k := range keys {
			if k.name == m.Key {
				k.read(here, m.Value)
				known = true
			}
		}
		if !known {
			names := make([]string, len(keys))
			for i, k := range keys {
				names[i] = k.name
			}
			r.faults.add(m.At, here, "is not a known key here; %s", hintAt(m.Key, names))
		}
	}
}

// is reports whether n has the kind. If not, it adds a fault, unless there already is one.
func (r *reader) is(path string, n *yamldoc.Node, want yamldoc.Kind, wanted string) bool {
	if n.Kind != want && n.Kind != yamldoc.Bad {
		r.faults.add(n.At, path, "must be %s, not %s.", wanted, n.Kind)
	}
	return n.Kind == want
}

func (r *reader) text(path string, n *yamldoc.Node, most int) string {
	if !r.is(path, n, yamldoc.Text, "a string") {
		return ""
	}
	switch {
	case strings.TrimSpace(n.Text) == "":
		r.faults.add(n.At, path, "is empty; set a value, or remove the key.")
	case len(n.Text) > most:
		r.faults.add(n.At, path, "is longer than %d bytes; shorten it.", most)
	default:
		return n.Text
	}
	return ""
}

// texts reads a string or a list of strings.
func (r *reader) texts(path string, n *yamldoc.Node) (list []string) {
	if n.Kind == yamldoc.Text {
		if text := r.text(path, n, maxName); text != "" {
			return []string{text}
		}
		return nil
	}
	if !r.is(path, n, yamldoc.List, "a string or a list of strings") {
		return nil
	}
	if len(n.Items) == 0 {
		r.faults.add(n.At, path, "is an empty list, which matches nothing; add an entry, or remove the key.")
	}
	for i, item := range n.Items {
		if text := r.text(fmt.Sprintf("%s[%d]", path, i), item, maxName); text != "" {
			list = append(list, text)
		}
	}
	return list
}

func (r *reader) choice(path string, n *yamldoc.Node, words ...string) string {
	text := r.text(path, n, maxName)
	if slices.Contains(words, text) {
		return text
	}
	if text != "" {
		r.faults.add(n.At, path, "%s is unknown; %s", quote(text), hintAt(text, words))
	}
	return ""
}

func (r *reader) bool(path string, n *yamldoc.Node) bool {
	return r.is(path, n, yamldoc.Bool, "true or false") && strings.EqualFold(n.Text, "true")
}

func (r *reader) number(path string, n *yamldoc.Node, least, most int) int {
	if !r.is(path, n, yamldoc.Number, fmt.Sprintf("a number from %d to %d", least, most)) {
		return 0
	}
	v, err := strconv.Atoi(n.Text)
	if err != nil || v < least || v > most {
		r.faults.add(n.At, path, "must be a whole number from %d to %d.", least, most)
		return 0
	}
	return v
}

const day = 24 * time.Hour

func (r *reader) duration(path string, n *yamldoc.Node, least, most time.Duration) time.Duration {
	if n.Kind == yamldoc.Number {
		r.faults.add(n.At, path, "has no unit; add one, such as %s.", quote("10m"))
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
		r.faults.add(n.At, path, "%s is not a duration; write a number with its unit, such as \"90s\", \"10m\", \"4h\" or \"2d\".", quote(text))
		return 0
	case d < least || d > most:
		r.faults.add(n.At, path, "must be from %s to %s.", durationText(least), durationText(most))
		return 0
	}
	return d
}

func durationText(d time.Duration) string {
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
