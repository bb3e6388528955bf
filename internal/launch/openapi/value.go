package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// value is a JSON value as written: numbers keep their digits, and objects the order of their members.
type value struct {
	kind    byte   // s, n, b, 0, a or o: string, number, bool, null, array, object
	text    string // of a string, number or bool
	items   []value
	members []pair
	raw     json.RawMessage
}

type pair struct {
	name  string
	value value
}

const maxValueDepth = 64

var errNoJSON = errors.New("the arguments are not valid JSON.")

// read parses one JSON value.
func read(raw json.RawMessage) (value, error) { return readAt(raw, 0) }

func readAt(raw json.RawMessage, depth int) (value, error) {
	raw = bytes.TrimSpace(raw)
	v := value{raw: raw}
	if len(raw) == 0 || depth > maxValueDepth {
		return v, errNoJSON
	}
	switch raw[0] {
	case '"':
		v.kind = 's'
		if json.Unmarshal(raw, &v.text) != nil {
			return v, errNoJSON
		}
		return v, nil
	case 'n':
		v.kind = '0'
		return v, nil
	case 't', 'f':
		v.kind, v.text = 'b', string(raw)
		return v, nil
	case '[':
		v.kind = 'a'
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return v, errNoJSON
		}
		for _, item := range items {
			inner, err := readAt(item, depth+1)
			if err != nil {
				return v, err
			}
			v.items = append(v.items, inner)
		}
		return v, nil
	case '{':
		v.kind = 'o'
		members, err := readMembers(raw)
		for _, m := range members {
			inner, err := readAt(m.raw, depth+1)
			if err != nil {
				return v, err
			}
			v.members = append(v.members, pair{m.name, inner})
		}
		return v, err
	}
	v.kind, v.text = 'n', string(raw)
	return v, nil
}

type rawMember struct {
	name string
	raw  json.RawMessage
}

// readMembers parses the members of an object in order, without changing their values.
func readMembers(raw json.RawMessage) ([]rawMember, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("the arguments are not a JSON object.")
	}
	var out []rawMember
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, errNoJSON
		}
		m := rawMember{name: key.(string)}
		if err := dec.Decode(&m.raw); err != nil {
			return nil, errNoJSON
		}
		out = append(out, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, errNoJSON
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the arguments are more than one JSON value.")
	}
	return out, nil
}
