package format

import (
	"bytes"
	"strings"
)

// python reads calls in Python syntax: tool(a=1, b="x"), or a list of them.
func (x *extractor) python(n *lenientParser) (*value, bool) {
	calls := list()
	many := n.at < len(n.text) && n.text[n.at] == '['
	if many {
		n.at++
	}
	for {
		n.space()
		from := n.at
		for n.at < len(n.text) && (nameByte(n.text[n.at]) || strings.IndexByte(".:/", n.text[n.at]) >= 0) {
			n.at++
		}
		name := strings.TrimSpace(string(n.text[from:n.at]))
		if *n.steps--; *n.steps < 0 || name == "" || n.at >= len(n.text) || n.text[n.at] != '(' {
			return nil, false
		}
		if name == "print" {
			return nil, false
		}
		n.at++
		arguments := object()
		for n.space(); n.at < len(n.text) && n.text[n.at] != ')'; n.space() {
			if n.text[n.at] == ',' {
				n.at++
				continue
			}
			key, ok := n.name()
			n.space()
			if !ok || n.at >= len(n.text) || n.text[n.at] != '=' || len(arguments.members) == maxArguments {
				return nil, false // positional arguments cannot be assigned to properties
			}
			n.at++
			begin := len(n.out)
			if !n.value(0) {
				return nil, false
			}
			v, err := read(bytes.Clone(n.out[begin:]))
			if err != nil {
				return nil, false
			}
			arguments.set(key, v)
		}
		if n.at >= len(n.text) {
			return nil, false
		}
		n.at++
		calls.items = append(calls.items, fields("name", name).set("arguments", arguments))
		n.space()
		if !many {
			return calls, true
		}
		if n.at < len(n.text) && n.text[n.at] == ',' {
			n.at++
			continue
		}
		if n.at < len(n.text) && n.text[n.at] == ']' {
			n.at++
			return calls, true
		}
		return nil, false
	}
}
