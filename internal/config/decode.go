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
)

// maxValues bounds how many values one configuration has, aliases counted where
// they are used.
const maxValues = 100_000

// decoder puts nodes into Go values. It goes on after a fault, so that all of
// them are found; what has a fault keeps the value it had.
type decoder struct {
	faults *report
	expand *expander
	// places remembers where each path was set, for the faults of Validate.
	places map[string]place
	values int
	// misplaced returns the path at which a key is known, or "".
	misplaced func(key string) string
}

func (d *decoder) decode(path string, n *node, v reflect.Value) {
	if d.values++; d.values >= maxValues {
		if d.values == maxValues {
			d.faults.add(n.at, path, "more than %d values in all; write less, or use fewer aliases.", maxValues)
		}
		return
	}
	if d.places != nil {
		d.places[path] = n.at
	}
	if n.kind == kindBad {
		return
	}
	t := v.Type()
	switch {
	case t.Kind() == reflect.Pointer:
		d.pointer(path, n, v)
	case isText(t):
		d.byText(path, n, v)
	default:
		d.byKind(path, n, v)
	}
}

func (d *decoder) pointer(path string, n *node, v reflect.Value) {
	if n.kind == kindNull {
		v.SetZero()
		return
	}
	fresh := reflect.New(v.Type().Elem())
	if !v.IsNil() {
		fresh.Elem().Set(v.Elem())
	}
	d.decode(path, n, fresh.Elem())
	v.Set(fresh)
}

func (d *decoder) byKind(path string, n *node, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		d.structure(path, n, v)
	case reflect.Map:
		d.table(path, n, v)
	case reflect.Slice:
		d.list(path, n, v)
	case reflect.Interface:
		if value := d.free(path, n); value != nil {
			v.Set(reflect.ValueOf(value))
		} else {
			v.SetZero()
		}
	default:
		d.scalar(path, n, v)
	}
}

// structure fills the fields that the map names.
func (d *decoder) structure(path string, n *node, v reflect.Value) {
	fields := fieldsOf(v.Type())
	sections := make([]section, len(fields))
	for i, f := range fields {
		sections[i] = section{f.key, v.FieldByIndex(f.index)}
	}
	d.members(path, n, sections, nil)
}

// members puts the members of a map where their keys say; others are keys that
// belong to somebody else.
func (d *decoder) members(path string, n *node, sections []section, others []string) {
	switch n.kind {
	case kindNull: // a section whose keys are all comments
		return
	case kindMap:
	default:
		d.faults.add(n.at, path, "must be a map of keys, not %s; indent its keys below it.", n.kind)
		return
	}
	d.faults.duplicates(path, n)
	known := make(map[string]int, len(sections))
	names := make([]string, 0, len(sections)+len(others))
	for i, s := range sections {
		known[s.key] = i
		names = append(names, s.key)
	}
	foreign := make(map[string]bool, len(others))
	for _, name := range others {
		foreign[name] = true
		names = append(names, name)
	}
	done := make(map[string]bool, len(n.members))
	for _, m := range n.members {
		if done[m.key] || foreign[m.key] {
			continue
		}
		done[m.key] = true
		i, ok := known[m.key]
		if !ok {
			d.unknown(path, m, names)
			continue
		}
		d.decode(join(path, m.key), m.value, sections[i].value)
	}
}

func (d *decoder) unknown(path string, m member, names []string) {
	mend := ""
	if nearest(m.key, names) == "" && d.misplaced != nil {
		if elsewhere := d.misplaced(m.key); elsewhere != "" && elsewhere != join(path, m.key) {
			mend = fmt.Sprintf("it is known as %s; move it there.", elsewhere)
		}
	}
	if mend == "" {
		mend = hint(m.key, names)
	}
	d.faults.add(m.at, joinName(path, shorten(m.key)), "is no key that is known here; %s", mend)
}

func (d *decoder) table(path string, n *node, v reflect.Value) {
	switch n.kind {
	case kindNull:
		v.SetZero()
		return
	case kindMap:
	default:
		d.faults.add(n.at, path, "must be a map of names to values, not %s.", n.kind)
		return
	}
	d.faults.duplicates(path, n)
	// What is written replaces the default as a whole: a default that stays below
	// what was written could not be taken away.
	m := reflect.MakeMapWithSize(v.Type(), len(n.members))
	for _, mem := range n.members {
		key := reflect.ValueOf(mem.key).Convert(v.Type().Key())
		if m.MapIndex(key).IsValid() {
			continue
		}
		value := reflect.New(v.Type().Elem()).Elem()
		d.decode(joinName(path, mem.key), mem.value, value)
		m.SetMapIndex(key, value)
	}
	v.Set(m)
}

func (d *decoder) list(path string, n *node, v reflect.Value) {
	switch n.kind {
	case kindNull:
		v.SetZero()
		return
	case kindList:
	default:
		d.faults.add(n.at, path, "must be a list, not %s; write it as [a, b].", n.kind)
		return
	}
	list := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		d.decode(fmt.Sprintf("%s[%d]", path, i), item, list.Index(i))
	}
	v.Set(list)
}

// free gives a value without a wanted type: text, number, bool, list, map or nil.
func (d *decoder) free(path string, n *node) any {
	switch n.kind {
	case kindText:
		text, _, _ := d.textOf(path, n)
		return text
	case kindBool:
		return n.text == "true" || n.text == "True" || n.text == "TRUE"
	case kindNumber:
		if i, err := parseInt(n.text, 64); err == nil {
			return i
		}
		if f, err := strconv.ParseFloat(n.text, 64); err == nil {
			return f
		}
		d.faults.add(n.at, path, "this number cannot be read; write it in decimal, or as a text in quotes.")
	case kindList:
		var list []any
		d.list(path, n, reflect.ValueOf(&list).Elem())
		return list
	case kindMap:
		var m map[string]any
		d.table(path, n, reflect.ValueOf(&m).Elem())
		return m
	}
	return nil
}

// textOf returns the text of a scalar with its variables put in, and whether
// there were any; ok is false after a fault.
func (d *decoder) textOf(path string, n *node) (text string, expanded, ok bool) {
	if n.kind != kindText || n.literal {
		return n.text, false, true
	}
	text, expanded, err := d.expand.expand(n.text)
	if err != nil {
		d.faults.add(n.at, path, "%v", err)
		return "", false, false
	}
	return text, expanded, true
}

// byText fills types that read one text: durations, sizes, secrets, others' own.
func (d *decoder) byText(path string, n *node, v reflect.Value) {
	switch n.kind {
	case kindNull:
		d.empty(path, n)
		return
	case kindList, kindMap:
		d.faults.add(n.at, path, "must be one value, not %s.", n.kind)
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
	// A text that the file does not show, or that hides itself in logs, is not
	// shown by a fault either.
	_, secret := fresh.Interface().(slog.LogValuer)
	if expanded || n.hidden || secret {
		d.faults.add(n.at, path, "the value (not shown) is not valid here; correct it where it comes from.")
		return
	}
	d.faults.add(n.at, path, "%v", err)
}

func (d *decoder) empty(path string, n *node) {
	d.faults.add(n.at, path, "has no value; give it one, or remove the key.")
}

// scalar fills texts, bools and numbers.
func (d *decoder) scalar(path string, n *node, v reflect.Value) {
	if n.kind == kindNull {
		d.empty(path, n)
		return
	}
	text, expanded, ok := d.textOf(path, n)
	if !ok {
		return
	}
	// The value of a variable is a text whatever it means.
	free := n.kind == kindText && (expanded || n.loose)
	switch v.Kind() {
	case reflect.String:
		switch n.kind {
		case kindText:
			v.SetString(text)
		case kindBool, kindNumber:
			d.faults.add(n.at, path, "must be a text, not %s; put it in quotes.", n.kind)
		default:
			d.faults.add(n.at, path, "must be a text, not %s.", n.kind)
		}
	case reflect.Bool:
		lower := strings.ToLower(text)
		if n.kind != kindBool && !free || lower != "true" && lower != "false" {
			d.faults.add(n.at, path, "must be true or false, without quotes.")
			return
		}
		v.SetBool(lower == "true")
	default:
		if n.kind != kindNumber && !free {
			d.faults.add(n.at, path, "must be %s, not %s%s.", wanted(v.Type()), n.kind, unquote(n))
			return
		}
		if err := setNumber(v, strings.TrimSpace(text)); err != nil {
			d.faults.add(n.at, path, "%v", err)
		}
	}
}

func unquote(n *node) string {
	if n.kind == kindText {
		return "; write it without quotes"
	}
	return ""
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// setNumber reads text as the number that v holds. Its errors do not repeat text.
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

// parseInt takes decimal, 0x, 0o and 0b. A leading zero is refused: readers of
// YAML disagree on whether it means octal.
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
