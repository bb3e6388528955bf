package native

import (
	"context"
	"encoding/json"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/validate"
)

type numbers struct {
	Int    int                `json:"int,omitempty"`
	Small  int8               `json:"small,omitempty"`
	Un     uint64             `json:"un,omitempty"`
	Many   []int              `json:"many,omitempty"`
	Named  map[string]*int64  `json:"named,omitempty"`
	Inner  *numbers           `json:"inner,omitempty"`
	Big    *big.Int           `json:"big,omitempty"`
	Float  float64            `json:"float,omitempty"`
	Raw    json.RawMessage    `json:"raw,omitempty"`
	Any    any                `json:"any,omitempty"`
	Number json.Number        `json:"number,omitempty"`
	Floats map[string]float32 `json:"floats,omitempty"`
}

// A number is an integer by its value, in the schema and for the function.
func TestNumbersWithIntegralValueAreIntegers(t *testing.T) {
	raw, err := schemaFor(reflect.TypeFor[numbers]())
	if err != nil {
		t.Fatal(err)
	}
	s, err := validate.Compile(raw)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`{"int":1e3}`:                       `{"int":1000}`,
		`{"int":1.0}`:                       `{"int":1}`,
		`{"int": -12.50e+1 , "small":1}`:    `{"int":-125,"small":1}`,
		`{"int":1200e-2}`:                   `{"int":12}`,
		`{"int":0.0e99999999999999999999}`:  `{}`,
		`{"int":-0.0,"un":-0}`:              `{}`,
		`{"int":0.00012e4}`:                 ``,
		`{"int":9007199254740993.0}`:        `{"int":9007199254740993}`,
		`{"un":18446744073709551615.00}`:    `{"un":18446744073709551615}`,
		`{"un":1.8446744073709551615e19}`:   `{"un":18446744073709551615}`,
		`{"many":[1,2.0,3e0]}`:              `{"many":[1,2,3]}`,
		`{"named":{"a":1.0,"b":null}}`:      `{"named":{"a":1,"b":null}}`,
		`{"inner":{"int":7.0,"any":1.0}}`:   `{"inner":{"int":7,"any":1}}`,
		`{"big":1e30}`:                      `{"big":1000000000000000000000000000000}`,
		`{"raw":1.0,"int":2.0}`:             `{"int":2,"raw":1.0}`,
		`{"number":1.50,"int":2.0}`:         `{"int":2,"number":1.50}`,
		`{"float":1.5,"int":2e0}`:           `{"int":2,"float":1.5}`,
		`{"int":1.5}`:                       ``,
		`{"int":1e-1}`:                      ``,
		`{"small":1.28e2}`:                  ``,
		`{"small":127.0}`:                   `{"small":127}`,
		`{"int":"1.0"}`:                     ``,
		`{"un":-1.0}`:                       ``,
		`{"int":1.0,"no such member":true}`: ``,
	} {
		var in numbers
		err := decode([]byte(text), &in)
		got, marshalErr := json.Marshal(in)
		if marshalErr != nil {
			t.Fatal(marshalErr)
		}
		if want == "" {
			if err == nil {
				t.Errorf("%s was accepted as %s", text, got)
			}
		} else if err != nil || string(got) != want {
			t.Errorf("%s: %v, %s", text, err, got)
		}
		if fits := len(s.Validate([]byte(text))) == 0; fits != (want != "") {
			t.Errorf("the schema says %t to %s", fits, text)
		}
	}
	// What fits no integer of Go is refused, however large its exponent.
	for _, number := range []string{"1e19", "1e400", "1e999999999", "1e99999999999999999999", "1e-99999999999999999999", "9223372036854775808.0"} {
		if err := decode([]byte(`{"int":`+number+`}`), new(numbers)); err == nil || !strings.Contains(err.Error(), "int") {
			t.Errorf("%s: %v", number, err)
		}
	}
	for _, number := range []string{"1e999999999", "1e99999999999999999999"} {
		if err := decode([]byte(`{"big":`+number+`}`), new(numbers)); err == nil {
			t.Errorf("%s was accepted", number)
		}
	}
}

// A nil pointer is never a structured result that the schema of the tool refuses.
func TestANilResultIsAnErrorWhereTheSchemaRequiresMembers(t *testing.T) {
	call := func(tool Tool, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(Info{Name: "s"}, tool)
		if err != nil {
			t.Fatal(err)
		}
		r, panicked, ok := s.Call(t.Context(), tool.Name, &Call{})
		if panicked != nil || !ok {
			t.Fatal(panicked)
		}
		return string(r.Body)
	}
	none := `{"content":[{"type":"text","text":"The tool returned no value (nil)."}],"isError":true}`
	type empty = struct{}
	got := call(Typed("find", "", func(context.Context, *Call, empty) (*base, error) { return nil, nil }))
	if got != none {
		t.Error(got)
	}
	got = call(Method("find", "", reflect.ValueOf(func() (*base, error) { return nil, nil })))
	if got != none {
		t.Error(got)
	}
	got = call(Typed("raw", "", func(context.Context, *Call, empty) (*Result, error) { return nil, nil }))
	if got != none {
		t.Error(got)
	}
	got = call(Typed("raw", "", func(context.Context, *Call, empty) (*Result, error) { r := Text("x"); return &r, nil }))
	if got != `{"content":[{"type":"text","text":"x"}]}` {
		t.Error(got)
	}
	got = call(Typed("find", "", func(context.Context, *Call, empty) (*base, error) { return &base{ID: 1}, nil }))
	if !strings.HasSuffix(got, `"structuredContent":{"id":1}}`) {
		t.Error(got)
	}
	// {} is what such a schema allows.
	got = call(Typed("some", "", func(context.Context, *Call, empty) (*struct {
		A int `json:"a,omitempty"`
	}, error) {
		return nil, nil
	}))
	if !strings.HasSuffix(got, `"structuredContent":{}}`) {
		t.Error(got)
	}
	got = call(Typed("count", "", func(context.Context, *Call, empty) (*int, error) { return nil, nil }))
	if !strings.HasSuffix(got, `"structuredContent":{"result":null}}`) {
		t.Error(got)
	}
}
