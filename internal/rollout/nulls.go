package rollout

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/callyard/callyard/internal/episode"
)

// property is what is read of the schema of an argument.
type property struct {
	Type  json.RawMessage `json:"type"` // a text or a list
	AnyOf []property      `json:"anyOf"`
	OneOf []property      `json:"oneOf"`
}

// withoutNulls returns the input of a call without the arguments that are null, where the schema
// of the tool lets them be left out and does not let them be null. TRL calls a tool as a Python
// function and sends the default of each parameter, which is None for one without a default: it
// cannot leave an argument out. Anything else, and the input of an unknown tool, stays as it is.
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

// refusesNull says that the schema names types, and that null is none of them.
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
