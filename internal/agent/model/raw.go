package model

import (
	"encoding/json"
	"maps"
	"slices"
)

// arrayOf writes values as a list and objectOf members as an object, sorted by name. The values
// stay as they came, byte for byte, while encode leaves out the spaces in them: the arguments of
// a call are what the model wrote, and the official libraries return them so as well.
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

func appendRaw(b, value json.RawMessage) json.RawMessage {
	if value == nil {
		return append(b, "null"...)
	}
	return append(b, value...)
}
