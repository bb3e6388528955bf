package model

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// arrayOf encodes a list of values, and objectOf an object with members sorted by name. The values
// remain unchanged byte for byte, while encode would remove whitespace: the arguments of a call must
// be exactly as the model wrote them, and the official libraries also send them back that way.
func arrayOf(values []json.RawMessage) json.RawMessage {
	b := json.RawMessage{'['}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendRaw(b, v)
	}
	return append(b, ']')
}

func objectOf(members map[string]json.RawMessage) json.RawMessage {
	b := json.RawMessage{'{'}
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, textOf(name)...), ':')
		b = appendRaw(b, members[name])
	}
	return append(b, '}')
}

// textMembers collects the texts of a streamed message, by member.
type textMembers map[string]*strings.Builder

func (t textMembers) add(name, piece string) {
	if t[name] == nil {
		t[name] = new(strings.Builder)
	}
	t[name].WriteString(piece)
}

func appendRaw(b, value json.RawMessage) json.RawMessage {
	if value == nil {
		return append(b, "null"...)
	}
	return append(b, value...)
}
