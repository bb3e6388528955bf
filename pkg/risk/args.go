package risk

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// maxArgumentDepth bounds the nesting of arguments that conditions look at.
const maxArgumentDepth = 128

// Why arguments or a value in them cannot be judged. They name no value.
var (
	errUnreadable = errors.New("the arguments are not a strict JSON object.")
	errTooBig     = errors.New("a number in the arguments is too large to compare.")
)

// argsOf decodes arguments for conditions. The bytes that run are never made
// from it. Whole numbers become int, or uint from 2⁶³; one beyond 64 bits is an
// error wherever a condition touches it, because a rounded number could be let
// through in place of the true one. Numbers with a fraction or exponent become
// double. What could mean two things (a key twice, broken UTF-8, half a surrogate
// pair) makes all of the arguments an error.
func argsOf(raw []byte) ref.Val {
	if len(raw) == 0 {
		return types.NewMap(types.DefaultTypeAdapter, map[string]ref.Val{})
	}
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return types.WrapErr(errUnreadable)
	}
	d := decoder{cursor{raw: raw}}
	if d.space(); d.raw[d.at] != '{' {
		return types.WrapErr(errUnreadable)
	}
	v, ok := d.value(0)
	if !ok {
		return types.WrapErr(errUnreadable)
	}
	return v
}

// decoder makes CEL values of JSON that was found valid before.
type decoder struct{ cursor }

func (d *decoder) value(depth int) (ref.Val, bool) {
	if depth > maxArgumentDepth {
		return nil, false
	}
	d.space()
	switch d.raw[d.at] {
	case '{':
		return d.members(depth)
	case '[':
		d.at++
		var list []ref.Val
		for !d.take(']') {
			v, ok := d.value(depth + 1)
			if !ok {
				return nil, false
			}
			list = append(list, v)
			d.take(',')
		}
		return types.NewRefValList(types.DefaultTypeAdapter, list), true
	case '"':
		text, ok := d.string()
		return types.String(text), ok
	case 't':
		d.at += len("true")
		return types.True, true
	case 'f':
		d.at += len("false")
		return types.False, true
	case 'n':
		d.at += len("null")
		return types.NullValue, true
	}
	return numberOf(string(d.cursor.value())), true
}

func (d *decoder) members(depth int) (ref.Val, bool) {
	d.at++
	m := map[string]ref.Val{}
	for !d.take('}') {
		d.space()
		key, ok := d.string()
		if !ok {
			return nil, false
		}
		if _, twice := m[key]; twice {
			return nil, false
		}
		d.take(':')
		if m[key], ok = d.value(depth + 1); !ok {
			return nil, false
		}
		d.take(',')
	}
	return types.NewMap(types.DefaultTypeAdapter, m), true
}

func (d *decoder) string() (string, bool) {
	raw := d.text()
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return "", false
	}
	// The decoder puts U+FFFD in the place of half a surrogate pair.
	return text, !strings.ContainsRune(text, utf8.RuneError)
}

func numberOf(text string) ref.Val {
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return types.Int(n)
		}
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			return types.Uint(n)
		}
		return types.WrapErr(errTooBig)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return types.WrapErr(errTooBig)
	}
	return types.Double(f)
}
