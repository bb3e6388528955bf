package config

import (
	"encoding"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

// free returns a value of no particular type: string, number, bool, list, map or nil.
func (d *decoder) free(path string, n *node) any {
	switch n.kind {
	case yamldoc.Text:
		text, _, _ := d.textOf(path, n)
		return text
	case yamldoc.Bool:
		return n.text == "true" || n.text == "True" || n.text == "TRUE"
	case yamldoc.Number:
		if i, err := parseInt(n.text, 64); err == nil {
			return i
		}
		if f, err := strconv.ParseFloat(n.text, 64); err == nil {
			return f
		}
		d.faults.add(n.at, path, "this number cannot be parsed; write it in decimal, or as a string in quotes.")
	case yamldoc.List:
		var list []any
		d.list(path, n, reflect.ValueOf(&list).Elem())
		return list
	case yamldoc.Map:
		var m map[string]any
		d.table(path, n, reflect.ValueOf(&m).Elem())
		return m
	}
	return nil
}

// textOf returns the text of a scalar with its variables replaced, and whether it had any. ok is
// false after a fault.
func (d *decoder) textOf(path string, n *node) (text string, expanded, ok bool) {
	if n.kind != yamldoc.Text || n.literal {
		return n.text, false, true
	}
	text, expanded, err := d.expand.expand(n.text)
	if err != nil {
		d.faults.add(n.at, path, "%v", err)
		return "", false, false
	}
	return text, expanded, true
}

// byText fills types that parse a text: durations, sizes, secrets and types of other packages.
func (d *decoder) byText(path string, n *node, v reflect.Value) {
	switch n.kind {
	case yamldoc.Null:
		d.empty(path, n)
		return
	case yamldoc.List, yamldoc.Map:
		d.faults.add(n.at, path, "must be a single value, not %s.", n.kind)
		return
	}
	text, expanded, ok := d.textOf(path, n)
	if !ok {
		return
	}
	fresh := reflect.New(v.Type())
	reader, isReader := fresh.Interface().(encoding.TextUnmarshaler)
	if v.Type() == durationType {
		reader, isReader = (*Duration)(fresh.Interface().(*time.Duration)), true
	}
	if !isReader {
		return
	}
	err := reader.UnmarshalText([]byte(text))
	if err == nil {
		v.Set(fresh.Elem())
		return
	}
	// A text that comes from a variable, or that hides itself in logs, must not appear in a fault.
	_, secret := fresh.Interface().(slog.LogValuer)
	if expanded || n.hidden || secret {
		d.faults.add(n.at, path, "the value (not shown) is not valid here; correct it at its source.")
		return
	}
	d.faults.add(n.at, path, "%v", err)
}

func (d *decoder) empty(path string, n *node) {
	d.faults.add(n.at, path, "has no value; set one, or remove the key.")
}

// scalar fills texts, bools and numbers.
func (d *decoder) scalar(path string, n *node, v reflect.Value) {
	if n.kind == yamldoc.Null {
		d.empty(path, n)
		return
	}
	text, expanded, ok := d.textOf(path, n)
	if !ok {
		return
	}
	// The value of a variable is always a text.
	free := n.kind == yamldoc.Text && (expanded || n.loose)
	switch v.Kind() {
	case reflect.String:
		switch n.kind {
		case yamldoc.Text:
			v.SetString(text)
		case yamldoc.Bool, yamldoc.Number:
			d.faults.add(n.at, path, "must be a string, not %s; put it in quotes.", n.kind)
		default:
			d.faults.add(n.at, path, "must be a string, not %s.", n.kind)
		}
	case reflect.Bool:
		lower := strings.ToLower(text)
		if n.kind != yamldoc.Bool && !free || lower != "true" && lower != "false" {
			d.faults.add(n.at, path, "must be true or false, without quotes.")
			return
		}
		v.SetBool(lower == "true")
	default:
		if n.kind != yamldoc.Number && !free {
			d.faults.add(n.at, path, "must be %s, not %s%s.", wanted(v.Type()), n.kind, unquote(n, v.Type()))
			return
		}
		if err := setNumber(v, strings.TrimSpace(text)); err != nil {
			d.faults.add(n.at, path, "%v", err)
		}
	}
}

// unquote returns the fix for a number in quotes. Without them, a text such as "256m" would be
// another fault.
func unquote(n *node, t reflect.Type) string {
	switch {
	case n.kind != yamldoc.Text:
		return ""
	case setNumber(reflect.New(t).Elem(), strings.TrimSpace(n.text)) == nil:
		return "; write it without quotes"
	}
	return "; write only digits, without a unit or quotes"
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// setNumber parses text as a number of the type of v. Its errors do not repeat the text.
func setNumber(v reflect.Value, text string) error {
	t := v.Type()
	switch t.Kind() {
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(text, t.Bits())
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return errors.New("must be a number, such as 0.5.")
		}
		v.SetFloat(f)
		return nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		i, err := parseInt(text, t.Bits())
		if err != nil && t.Bits() == 64 {
			return errors.New("must be a whole number, such as 10.")
		}
		if err != nil {
			return fmt.Errorf("must be a whole number from %d to %d.", int64(-1)<<(t.Bits()-1), int64(1)<<(t.Bits()-1)-1)
		}
		v.SetInt(i)
		return nil
	default:
		u, err := parseUint(text, t.Bits())
		if err != nil {
			return fmt.Errorf("must be a whole number from 0 to %d.", uint64(math.MaxUint64)>>(64-t.Bits()))
		}
		v.SetUint(u)
		return nil
	}
}

// parseInt parses decimal, 0x, 0o and 0b. It rejects a leading zero because YAML parsers disagree
// on whether it means octal.
func parseInt(s string, bits int) (int64, error) {
	if digits := strings.TrimLeft(s, "+-"); len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(s, 0, bits)
}

func parseUint(s string, bits int) (uint64, error) {
	if len(s) > 1 && s[0] == '0' && s[1] >= '0' && s[1] <= '9' {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseUint(s, 0, bits)
}
