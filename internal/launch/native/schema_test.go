package native

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/validate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type tree struct {
	Name string           `json:"name"`
	Kids []tree           `json:"kids,omitempty"`
	Next *tree            `json:"next,omitempty"`
	By   map[string]*tree `json:"by,omitempty"`
}

type left struct {
	Right *right `json:"right,omitempty"`
	N     int    `json:"n"`
}

type right struct {
	Left []left `json:"left,omitempty"`
}

type base struct {
	ID   int    `json:"id"`
	Kind string `json:"kind,omitempty"`
}

type outer struct {
	base
	*Pointed
	Kind  string `json:"kind"` // hides the one of base
	Other bool   `json:"-"`
}

type Pointed struct {
	Far float64 `json:"far"`
}

type twice struct {
	A1 struct {
		X int `json:"x"`
	} `json:"a1"`
	Bool   bool    `json:"bool,string"`
	Int    int64   `json:"int,string"`
	Float  float64 `json:"float,string,omitempty"`
	Ignore func()  `json:"-"`
}

type color string

// leaves are the types that the others are made of.
func leaves() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[bool](), reflect.TypeFor[string](), reflect.TypeFor[color](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](), reflect.TypeFor[int64](),
		reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](), reflect.TypeFor[uint64](), reflect.TypeFor[float32](), reflect.TypeFor[float64](),
		reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](), reflect.TypeFor[json.RawMessage](), reflect.TypeFor[json.Number](), reflect.TypeFor[*big.Int](), reflect.TypeFor[netip.Addr](), reflect.TypeFor[[]byte](), reflect.TypeFor[any](),
	}
}

// shapes are more than 200 types: leaves in structs, by pointer, in lists and in maps, and
// types with rules of their own.
func shapes() []reflect.Type {
	out := []reflect.Type{
		reflect.TypeFor[tree](), reflect.TypeFor[left](), reflect.TypeFor[outer](), reflect.TypeFor[twice](), reflect.TypeFor[struct{}](),
		reflect.TypeFor[map[int]string](), reflect.TypeFor[map[uint8]bool](), reflect.TypeFor[map[string]tree](), reflect.TypeFor[map[string]any](),
	}
	wrap := []func(reflect.Type) reflect.Type{
		func(t reflect.Type) reflect.Type { return t },
		reflect.PointerTo,
		reflect.SliceOf,
		func(t reflect.Type) reflect.Type { return reflect.ArrayOf(3, t) },
		func(t reflect.Type) reflect.Type { return reflect.MapOf(reflect.TypeFor[string](), t) },
		func(t reflect.Type) reflect.Type { return reflect.SliceOf(reflect.PointerTo(t)) },
		func(t reflect.Type) reflect.Type {
			return reflect.StructOf([]reflect.StructField{{Name: "In", Type: t, Tag: `json:"in"`}, {Name: "Maybe", Type: t, Tag: `json:"maybe,omitempty"`}})
		},
		func(t reflect.Type) reflect.Type {
			return reflect.MapOf(reflect.TypeFor[string](), reflect.SliceOf(t))
		},
		func(t reflect.Type) reflect.Type { return reflect.SliceOf(reflect.SliceOf(t)) },
	}
	for _, leaf := range leaves() {
		for i, w := range wrap {
			out = append(out, reflect.StructOf([]reflect.StructField{
				{Name: "V", Type: w(leaf), Tag: reflect.StructTag(fmt.Sprintf(`json:"v%d" jsonschema:"the value"`, i))},
				{Name: "Note", Type: reflect.TypeFor[string](), Tag: `json:"note,omitempty"`},
			}))
		}
	}
	return out
}

// maker makes values.
type maker struct{ r *rand.Rand }

// value returns a value of the type that encoding/json writes and reads.
func (m maker) value(t reflect.Type, depth int) reflect.Value {
	v := reflect.New(t).Elem()
	switch t {
	case timeType:
		v.Set(reflect.ValueOf(time.Unix(m.r.Int64N(4e9), m.r.Int64N(1e9)).UTC()))
		return v
	case rawType:
		v.SetBytes([]byte([]string{`null`, `1.0`, `{"a":[]}`, `"x"`, `9007199254740993`}[m.r.IntN(5)]))
		return v
	case numberType:
		v.SetString([]string{"0", "-1.5e3", "9007199254740993"}[m.r.IntN(3)])
		return v
	case bigIntType:
		v.Set(reflect.ValueOf(*new(big.Int).Lsh(big.NewInt(m.r.Int64()), uint(m.r.IntN(200)))))
		return v
	case reflect.TypeFor[netip.Addr]():
		v.Set(reflect.ValueOf(netip.AddrFrom4([4]byte{10, byte(m.r.Uint32()), 0, 1})))
		return v
	}
	switch t.Kind() {
	case reflect.Bool:
		v.SetBool(m.r.IntN(2) == 0)
	case reflect.String:
		v.SetString([]string{"", "a", "<&>", "é\u2028", "null"}[m.r.IntN(5)])
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(m.r.Uint64()) >> (64 - t.Bits()) >> m.r.IntN(t.Bits()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(m.r.Uint64() >> (64 - t.Bits()) >> m.r.IntN(t.Bits()))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(float32(m.r.NormFloat64() * math.Pow(10, float64(m.r.IntN(20)-10)))))
	case reflect.Interface:
		if m.r.IntN(4) > 0 {
			v.Set(reflect.ValueOf([]any{1.5, "x", true, map[string]any{"a": nil}}[m.r.IntN(4)]))
		}
	case reflect.Pointer:
		if depth < 4 && m.r.IntN(4) > 0 {
			v.Set(reflect.New(t.Elem()))
			v.Elem().Set(m.value(t.Elem(), depth+1))
		}
	case reflect.Slice:
		if n := m.r.IntN(4); depth < 4 && n > 0 {
			v.Set(reflect.MakeSlice(t, n-1, n-1))
			for i := range n - 1 {
				v.Index(i).Set(m.value(t.Elem(), depth+1))
			}
		}
	case reflect.Array:
		for i := range t.Len() {
			v.Index(i).Set(m.value(t.Elem(), depth+1))
		}
	case reflect.Map:
		if n := m.r.IntN(4); depth < 4 && n > 0 {
			v.Set(reflect.MakeMap(t))
			for range n - 1 {
				v.SetMapIndex(m.value(t.Key(), depth+1), m.value(t.Elem(), depth+1))
			}
		}
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && f.Type.Kind() != reflect.Func && (f.Tag.Get("json") != "-") {
				v.Field(i).Set(m.value(f.Type, depth+1))
			}
		}
	}
	return v
}

// spoil changes one place of a decoded value into one of another kind, or adds a member
// that no type has. It returns false where it changed nothing.
func (m maker) spoil(v any) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 || m.r.IntN(4) == 0 {
			v["no such member"] = true
			return v, true
		}
		keys := reflect.ValueOf(v).MapKeys()
		key := keys[m.r.IntN(len(keys))].String()
		changed, ok := m.spoil(v[key])
		v[key] = changed
		return v, ok
	case []any:
		if len(v) > 0 && m.r.IntN(3) > 0 {
			i := m.r.IntN(len(v))
			changed, ok := m.spoil(v[i])
			v[i] = changed
			return v, ok
		}
		return map[string]any{"no": "list"}, true
	case string:
		return true, true
	case bool:
		return []any{"x"}, true
	case json.Number:
		switch m.r.IntN(4) {
		case 0:
			return json.Number("-70000.5"), true // no integer, and below every unsigned one
		case 1: // the same value, written unlike an integer
			if !strings.ContainsAny(v.String(), ".eE") {
				return v + ".0", true
			}
		case 2:
			return json.Number("1e2"), true
		}
		return "7", true
	}
	return v, false
}

func TestSchemasAgreeWithEncodingJSON(t *testing.T) {
	types := shapes()
	if len(types) < 200 {
		t.Fatalf("there are only %d types", len(types))
	}
	m := maker{rand.New(rand.NewPCG(1, 2))}
	good, bad, refused := 0, 0, 0
	for _, typ := range types {
		raw, err := schemaFor(typ)
		if err != nil {
			t.Errorf("%v: %v", typ, err)
			continue
		}
		s, err := validate.Compile(raw)
		if err != nil {
			t.Errorf("%v: %v\n%s", typ, err, raw)
			continue
		}
		if left := s.Unenforced(); len(left) > 0 {
			t.Errorf("%v: not enforced: %v", typ, left)
		}
		for range 60 {
			made := reflect.New(typ)
			made.Elem().Set(m.value(typ, 0))
			text, err := json.Marshal(made.Interface())
			if err != nil {
				t.Fatalf("%v: %v", typ, err)
			}
			if decode(text, reflect.New(typ).Interface()) != nil {
				continue // encoding/json does not read what it wrote, such as null for an embedded pointer
			}
			if string(text) == "null" {
				continue
			}
			good++
			if faults := s.Validate(text); len(faults) > 0 {
				t.Errorf("%v refuses %s: %v\n%s", typ, text, faults, raw)
			}
			var tree any
			d := json.NewDecoder(strings.NewReader(string(text)))
			d.UseNumber()
			if err := d.Decode(&tree); err != nil {
				t.Fatal(err)
			}
			tree, changed := m.spoil(tree)
			if !changed {
				continue
			}
			spoiled, err := json.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			bad++
			fits, takes := len(s.Validate(spoiled)) == 0, decode(spoiled, reflect.New(typ).Interface()) == nil
			if !takes {
				refused++
			}
			if fits != takes {
				t.Errorf("%v: the schema says %t and encoding/json %t to %s\n%s", typ, fits, takes, spoiled, raw)
			}
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("%d types, %d values that fit, %d changed ones of which %d do not", len(types), good, bad, refused)
	if good < 10_000 || bad < 10_000 || refused < 5000 {
		t.Errorf("%d values that fit, %d changed ones, %d that do not fit: too few to show anything", good, bad, refused)
	}
}

func TestSchemasOfRecursiveTypesUseReferences(t *testing.T) {
	raw, err := schemaFor(reflect.TypeFor[tree]())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"type":"object","properties":{"name":{"type":"string"},"kids":{"type":["array","null"],"items":{"$ref":"#/$defs/tree"}},` +
		`"next":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]},"by":{"type":["object","null"],"additionalProperties":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]}}},` +
		`"required":["name"],"additionalProperties":false,"$defs":{"tree":`
	if !strings.HasPrefix(string(raw), want) {
		t.Errorf("got %s", raw)
	}
}

type chain[T any] struct {
	Value T         `json:"value"`
	Next  *chain[T] `json:"next,omitempty"`
}

type größe struct {
	Inner *größe `json:"inner,omitempty"`
}

func TestSchemasOfRecursiveTypesWithUnusualNamesCompile(t *testing.T) {
	for _, in := range []reflect.Type{reflect.TypeFor[chain[base]](), reflect.TypeFor[chain[chain[int]]](), reflect.TypeFor[größe]()} {
		raw, err := schemaFor(in)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := validate.Compile(raw); err != nil {
			t.Errorf("%s: %v: %s", in, err, raw)
		}
	}
}

func TestTypesThatJSONCannotHoldAreRefused(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[struct{ C chan int }](), reflect.TypeFor[struct{ F func() }](), reflect.TypeFor[struct{ C complex128 }](),
		reflect.TypeFor[struct{ M map[float64]int }](), reflect.TypeFor[struct{ E error }](),
	} {
		if raw, err := schemaFor(typ); err == nil {
			t.Errorf("%v has the schema %s", typ, raw)
		}
	}
}

func TestResultsFitTheirOutputSchemas(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(3, 4))}
	for _, typ := range append(shapes(), reflect.TypeFor[*base](), reflect.TypeFor[*outer](), reflect.TypeFor[*Pointed](), reflect.TypeFor[**base](), reflect.TypeFor[*int](), reflect.TypeFor[*string](),
		reflect.TypeFor[*[]string](), reflect.TypeFor[*json.RawMessage](), reflect.TypeFor[*map[string]int](), reflect.TypeFor[*struct {
			A int `json:"a,omitempty"`
		}]()) {
		var d definition
		kind, err := d.output(typ)
		if err != nil {
			t.Errorf("%v: %v", typ, err)
			continue
		}
		s, err := validate.Compile(d.OutputSchema)
		if err != nil {
			t.Errorf("%v: %v\n%s", typ, err, d.OutputSchema)
			continue
		}
		for range 10 {
			made := reflect.New(typ)
			made.Elem().Set(m.value(typ, 0))
			r, err := result(kind, made.Interface())
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				StructuredContent json.RawMessage `json:"structuredContent"`
			}
			if err := json.Unmarshal(r.Body, &got); err != nil {
				t.Fatalf("%v: %v in %s", typ, err, r.Body)
			}
			if r.IsError {
				if text, _ := json.Marshal(made.Interface()); string(text) != "null" {
					t.Errorf("%v: %s is answered with %s", typ, text, r.Body)
				}
				continue // nil, where the schema has required members
			}
			if faults := s.Validate(got.StructuredContent); len(faults) > 0 {
				t.Errorf("%v: its schema refuses %s: %v\n%s", typ, got.StructuredContent, faults, d.OutputSchema)
				return
			}
		}
	}
}
