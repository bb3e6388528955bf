package slack

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"github.com/callyard/callyard/internal/kit/jsonpointer"
)

// hiddenValue replaces a value that the tool's schema marks as secret.
const hiddenValue = `"[hidden]"`

// maxHide limits the depth to which arguments and schemas are followed.
const maxHide = 64

// marks finds the parts of a tool's input schema that apply to a place in arguments.
type marks struct{ root any }

// marksOf parses the schema of a tool's definition. ok is false if it cannot be parsed, because the
// secrets are then unknown.
func marksOf(definition []byte) (m marks, ok bool) {
	if len(definition) == 0 {
		return marks{}, true // no definition: no marks
	}
	var tool struct {
		Input json.RawMessage `json:"inputSchema"`
	}
	if json.Unmarshal(definition, &tool) != nil {
		return marks{}, false
	}
	if len(tool.Input) == 0 {
		return marks{}, true
	}
	return m, json.Unmarshal(tool.Input, &m.root) == nil
}

// all returns the schemas that apply to a value, including s. It sets hidden if one of them marks
// the value as secret, or cannot be followed.
func (m marks) all(s any, depth int, hidden *bool) []map[string]any {
	o, ok := s.(map[string]any)
	if !ok {
		return nil // true, false or absent
	}
	if depth > maxHide {
		*hidden = true
		return nil
	}
	if o["writeOnly"] == true || o["format"] == "password" || o["x-secret"] == true {
		*hidden = true
		return nil
	}
	found := []map[string]any{o}
	for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		ref, ok := o[key].(string)
		if !ok {
			continue
		}
		to, ok := m.resolve(ref)
		if !ok {
			*hidden = true
			return nil
		}
		found = append(found, m.all(to, depth+1, hidden)...)
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := o[key].([]any)
		for _, each := range list {
			found = append(found, m.all(each, depth+1, hidden)...)
		}
	}
	for _, key := range []string{"if", "then", "else", "not"} {
		found = append(found, m.all(o[key], depth+1, hidden)...)
	}
	if dependent, ok := o["dependentSchemas"].(map[string]any); ok {
		for _, each := range dependent {
			found = append(found, m.all(each, depth+1, hidden)...)
		}
	}
	return found
}

// resolve resolves a reference within the document.
func (m marks) resolve(ref string) (any, bool) {
	if ref == "#" {
		return m.root, true
	}
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok || strings.Contains(path, "%") {
		return nil, false
	}
	at := m.root
	for part := range strings.SplitSeq(path, "/") {
		o, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = o[jsonpointer.Name(part)]; !ok {
			return nil, false
		}
	}
	return at, true
}

// member returns the schemas of a member of an object.
func member(of []map[string]any, name string) (all []any) {
	for _, o := range of {
		named := false
		if p, ok := o["properties"].(map[string]any); ok {
			if s, ok := p[name]; ok {
				all, named = append(all, s), true
			}
		}
		if p, ok := o["patternProperties"].(map[string]any); ok {
			for pattern, s := range p {
				// A pattern that does not compile here may match, so it counts as a match.
				if re, err := regexp.Compile(pattern); err != nil || re.MatchString(name) {
					all, named = append(all, s), true
				}
			}
		}
		if !named {
			all = append(all, o["additionalProperties"])
		}
		all = append(all, o["unevaluatedProperties"])
	}
	return all
}

// element returns the schemas of an array element.
func element(of []map[string]any, i int) (all []any) {
	for _, o := range of {
		for _, key := range []string{"prefixItems", "items"} {
			switch s := o[key].(type) {
			case []any:
				if i < len(s) {
					all = append(all, s[i])
				}
			default:
				all = append(all, s)
			}
		}
		all = append(all, o["additionalItems"], o["unevaluatedItems"], o["contains"])
	}
	return all
}

// hide returns the JSON with every secret value replaced. All other bytes are unchanged.
func (m marks) hide(raw []byte) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(len(raw))
	if err := m.value(&out, raw, []any{m.root}, 0); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

var errDeep = errors.New("the arguments are nested too deeply")

func (m marks) value(out *bytes.Buffer, raw []byte, schemas []any, depth int) error {
	if depth > maxHide {
		return errDeep
	}
	hidden := false
	var of []map[string]any
	for _, s := range schemas {
		of = append(of, m.all(s, 0, &hidden)...)
	}
	if hidden {
		out.WriteString(hiddenValue)
		return nil
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' && raw[0] != '[' {
		out.Write(raw)
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if _, err := d.Token(); err != nil {
		return err
	}
	out.WriteByte(raw[0])
	for i := 0; d.More(); i++ {
		if i > 0 {
			out.WriteByte(',')
		}
		inner := element(of, i)
		if raw[0] == '{' {
			before := d.InputOffset()
			key, err := d.Token()
			if err != nil {
				return err
			}
			name, _ := key.(string)
			spelled := raw[before:d.InputOffset()]
			out.Write(spelled[bytes.IndexByte(spelled, '"'):])
			out.WriteByte(':')
			inner = member(of, name)
		}
		var each json.RawMessage
		if err := d.Decode(&each); err != nil {
			return err
		}
		if err := m.value(out, each, inner, depth+1); err != nil {
			return err
		}
	}
	_, err := d.Token()
	out.WriteByte(raw[0] + 2) // the closing brace or bracket
	return err
}
