package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/kit/rawjson"
)

// JSON Schema counts 1.0 and 1e3 as integers, and programs that have one kind of number write
// them. encoding/json decodes neither into an integer of Go.

// maxDigits bounds the digits that an exponent may add: 1e999999999 is short text of a number
// that fits no memory.
const maxDigits = 4096

// isIntegerFault reports whether decoding failed at a number that is written unlike an integer
// and was to become one.
func isIntegerFault(err error) bool {
	var fault *json.UnmarshalTypeError
	if errors.As(err, &fault) {
		return strings.HasPrefix(fault.Value, "number") && fault.Type != nil && integer(fault.Type.Kind()) != nil
	}
	return err != nil && strings.HasPrefix(err.Error(), "math/big: ") // Int.UnmarshalJSON has no type for it
}

// withIntegers returns a copy of text in which each number that becomes an integer in a value of
// the type is written as one, where its value is one. Everything else keeps its bytes.
func withIntegers(text []byte, t reflect.Type) []byte {
	w := integerWriter{text: text, fields: map[reflect.Type]map[string]field{}}
	w.Reset(text)
	if !w.value(t) {
		return text
	}
	return append(w.out, text[w.copied:]...)
}

// integerWriter walks a text and a type side by side.
type integerWriter struct {
	rawjson.Scanner
	text, out []byte
	copied    int // how far text is in out
	fields    map[reflect.Type]map[string]field
}

// value reads the value of a type. It returns false for text that is not JSON.
func (w *integerWriter) value(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	first := w.Peek()
	switch {
	case t == bigIntType || integer(t.Kind()) != nil && !isMarshaler(t):
		return w.number()
	case isMarshaler(t):
	case first == '{' && t.Kind() == reflect.Struct:
		fields := w.fieldsOf(t)
		return w.Object(func(name string) bool {
			if f, ok := fields[name]; ok && !f.quoted {
				return w.value(f.Type)
			}
			return w.Value()
		})
	case first == '{' && t.Kind() == reflect.Map:
		return w.Object(func(string) bool { return w.value(t.Elem()) })
	case first == '[' && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
		return w.Array(func() bool { return w.value(t.Elem()) })
	}
	return w.Value()
}

func (w *integerWriter) fieldsOf(t reflect.Type) map[string]field {
	if w.fields[t] == nil {
		byName := map[string]field{}
		for _, f := range fieldsOf(t) {
			byName[f.name] = f
		}
		w.fields[t] = byName
	}
	return w.fields[t]
}

// number reads a value that becomes an integer.
func (w *integerWriter) number() bool {
	w.Peek() // skips white space
	from := w.At()
	if !w.Value() {
		return false
	}
	if plain, ok := asInteger(w.text[from:w.At()]); ok {
		w.out = append(append(w.out, w.text[w.copied:from]...), plain...)
		w.copied = w.At()
	}
	return true
}

// asInteger writes a JSON number without fraction and exponent. ok is false for what has a
// fraction, is no number, or has more digits than any integer is given.
func asInteger(number []byte) (plain string, ok bool) {
	digits, isNegative := bytes.CutPrefix(number, []byte("-"))
	if len(digits) == 0 || digits[0] < '0' || digits[0] > '9' {
		return "", false
	}
	exponent := 0
	if i := bytes.IndexAny(digits, "eE"); i >= 0 {
		var err error
		// Of an exponent out of range, nothing but zero is an integer that fits.
		if exponent, err = strconv.Atoi(string(digits[i+1:])); err != nil {
			exponent = maxDigits + 1
			if digits[i+1] == '-' {
				exponent = -len(number)
			}
		}
		digits = digits[:i]
	}
	whole, fraction, _ := strings.Cut(string(digits), ".")
	all := whole + fraction
	point := len(whole) + exponent // where the point is in all
	trimmed := strings.TrimRight(all, "0")
	switch {
	case trimmed == "":
		return "0", true
	case len(trimmed) > point || point > max(maxDigits, len(whole)):
		return "", false
	case point > len(all):
		all += strings.Repeat("0", point-len(all))
	}
	plain = strings.TrimLeft(all[:point], "0")
	if isNegative {
		plain = "-" + plain
	}
	return plain, true
}
