// Package plainjson encodes values as JSON without escaping for HTML: <, > and & stay as
// they are, as people and models read them.
//
// It promises what encoding/json promises but for that. It refuses to make JSON fit for an
// HTML page: what is put into one is encoded with encoding/json.
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

// Line is Marshal with a line feed at the end.
func Line(v any) ([]byte, error) {
	var b bytes.Buffer
	if err := NewEncoder(&b).Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// NewEncoder returns an encoder that writes lines. It is used by one goroutine.
func NewEncoder(to io.Writer) *json.Encoder {
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	return e
}
