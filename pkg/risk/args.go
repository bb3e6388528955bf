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

// maxArgumentDepth limits the nesting of arguments that conditions can read.
const maxArgumentDepth = 128

// The reasons why arguments or a value in them cannot be evaluated. They contain no values.
var (
	errUnreadable = errors.New("the arguments are not a strict JSON object.")
	errTooBig     = errors.New("a number in the arguments is too large to compare.")
)

// argsOf decodes arguments for conditions only; the arguments that run are never
// re-encoded from it. Whole numbers become int, or uint from 2⁶³. A number beyond 64
// bits is an error when a condition reads it, because rounding could let a different
// number pass. Numbers with a fraction or exponent become double. Ambiguous arguments
// (a duplicate key, invalid UTF-8, an unpaired surrogate) are an error as a whole.
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

// decoder builds CEL values from valid JSON.
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
	// json.Unmarshal replaces an unpaired surrogate with U+FFFD.
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
