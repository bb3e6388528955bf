package rollout

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/callyard/callyard/internal/episode"
)

// property is the parsed part of an argument's schema.
type property struct {
	Type  json.RawMessage `json:"type"` // a string or a list
	AnyOf []property      `json:"anyOf"`
	OneOf []property      `json:"oneOf"`
}

// withoutNulls removes null arguments from the input of a call if the tool's schema makes them
// optional and does not allow null. TRL calls a tool as a Python function and sends the default of
// each parameter, which is None for one without a default, so it cannot omit an argument. Other
// arguments, and the input of an unknown tool, are unchanged.
func withoutNulls(input json.RawMessage, tools []episode.Tool, name string) json.RawMessage {
	if !bytes.Contains(input, []byte("null")) {
		return input
	}
	at := slices.IndexFunc(tools, func(t episode.Tool) bool { return t.Name == name })
	var members map[string]json.RawMessage
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if at < 0 || json.Unmarshal(input, &members) != nil || json.Unmarshal(tools[at].InputSchema, &schema) != nil {
		return input
	}
	dropped := false
	for member, value := range members {
		var p property
		if string(value) == "null" && !slices.Contains(schema.Required, member) && json.Unmarshal(schema.Properties[member], &p) == nil && p.refusesNull() {
			delete(members, member)
			dropped = true
		}
	}
	if !dropped {
		return input
	}
	out, err := json.Marshal(members)
	if err != nil {
		return input
	}
	return out
}

// refusesNull reports whether the schema names types and null is not one of them.
func (p *property) refusesNull() bool {
	var one string
	var list []string
	switch {
	case json.Unmarshal(p.Type, &one) == nil:
		return one != "null"
	case json.Unmarshal(p.Type, &list) == nil:
		return !slices.Contains(list, "null")
	}
	either := append(slices.Clone(p.AnyOf), p.OneOf...)
	return len(either) > 0 && !slices.ContainsFunc(either, func(o property) bool { return !o.refusesNull() })
}
