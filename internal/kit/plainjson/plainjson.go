// Package plainjson encodes values as JSON without HTML escaping: <, > and & remain readable
// for people and models.
//
// Apart from that it behaves like encoding/json. Its output must not be embedded in an HTML page:
// use encoding/json for that.
package plainjson

import (
	"bytes"
	"encoding/json"
	"io"
)

// Marshal returns v as JSON. The errors are those of [json.Marshal]. It is safe for
// concurrent use.
func Marshal(v any) ([]byte, error) {
	line, err := Line(v)
	return bytes.TrimSuffix(line, []byte("\n")), err
}

// Line is like Marshal, with a line feed at the end.
func Line(v any) ([]byte, error) {
	var b bytes.Buffer
	if err := NewEncoder(&b).Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// NewEncoder returns an encoder that writes one value per line. It must be used by one goroutine.
func NewEncoder(to io.Writer) *json.Encoder {
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	return e
}
