package bfcl

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"strconv"
	"strings"
)

// Values have the types of Python, because the rules compare them like Python: nil, bool, *big.Int,
// float64, string, []any and *dict.

// dict is an object that keeps the order of its keys.
type dict struct {
	keys   []string
	values map[string]any
}

func (d *dict) set(key string, value any) {
	if d.values == nil {
		d.values = make(map[string]any)
	}
	if _, ok := d.values[key]; !ok {
		d.keys = append(d.keys, key)
	}
	d.values[key] = value
}

func (d *dict) get(key string) (any, bool) {
	if d == nil {
		return nil, false
	}
	v, ok := d.values[key]
	return v, ok
}

// text returns a string member, or "" if there is none.
func (d *dict) text(key string) string {
	v, _ := d.get(key)
	s, _ := v.(string)
	return s
}

// object returns an object member, or nil if there is none.
func (d *dict) object(key string) *dict {
	v, _ := d.get(key)
	o, _ := v.(*dict)
	return o
}

// list returns a list member, or nil if there is none.
func (d *dict) list(key string) []any {
	v, _ := d.get(key)
	l, _ := v.([]any)
	return l
}

// maxDepth limits the nesting of JSON.
const maxDepth = 500

var errDepth = errors.New("the JSON is nested too deeply")

// read parses one JSON value. Numbers with a fraction or an exponent are floats, as in Python.
func read(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := readValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text follows the JSON")
	}
	return v, nil
}

func readValue(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, errDepth
	}
	switch t := token.(type) {
	case json.Number:
		return number(string(t)), nil
	case json.Delim:
		if t == '[' {
			list := []any{}
			for d.More() {
				v, err := readValue(d, depth+1)
				if err != nil {
					return nil, err
				}
				list = append(list, v)
			}
			_, err := d.Token()
			return list, err
		}
		object := &dict{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := readValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			name, _ := key.(string)
			object.set(name, v)
		}
		_, err := d.Token()
		return object, err
	}
	return token, nil // nil, bool or string
}

func number(text string) any {
	if !strings.ContainsAny(text, ".eE") {
		if n, ok := new(big.Int).SetString(text, 10); ok {
			return n
		}
	}
	f, _ := strconv.ParseFloat(text, 64) // infinite if it is too large, as in Python
	return f
}

// kind returns the name of the type in Python.
func kind(v any) string {
	switch v.(type) {
	case bool:
		return "bool"
	case *big.Int:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case []any:
		return "list"
	case *dict:
		return "dict"
	}
	return "NoneType"
}

// equal is Python's ==, for which 1, 1.0 and True are equal.
func equal(a, b any) bool {
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		return ok && x == y
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !equal(x[i], y[i]) {
				return false
			}
		}
		return true
	case *dict:
		y, ok := b.(*dict)
		if !ok || len(x.keys) != len(y.keys) {
			return false
		}
		for _, key := range x.keys {
			if other, ok := y.get(key); !ok || !equal(x.values[key], other) {
				return false
			}
		}
		return true
	case nil:
		return b == nil
	}
	return equalNumbers(a, b)
}

func equalNumbers(a, b any) bool {
	x, xInt := integer(a)
	y, yInt := integer(b)
	f, xFloat := a.(float64)
	g, yFloat := b.(float64)
	switch {
	case xInt && yInt:
		return x.Cmp(y) == 0
	case xFloat && yFloat:
		return f == g
	case xInt && yFloat:
		return sameNumber(x, g)
	case xFloat && yInt:
		return sameNumber(y, f)
	}
	return false
}

// integer returns an integer or a bool as an integer.
func integer(v any) (*big.Int, bool) {
	switch v := v.(type) {
	case *big.Int:
		return v, true
	case bool:
		if v {
			return big.NewInt(1), true
		}
		return new(big.Int), true
	}
	return nil, false
}

func sameNumber(n *big.Int, f float64) bool {
	if f != f || f-f != 0 { // not a number, or infinite
		return false
	}
	return new(big.Float).SetInt(n).Cmp(big.NewFloat(f)) == 0
}

// in is Python's "value in list".
func in(v any, list []any) bool {
	for _, item := range list {
		if equal(v, item) {
			return true
		}
	}
	return false
}
