package rawjson

import (
	"encoding/json"
	"testing"
)

func TestWithSetsOneMemberAndKeepsTheRest(t *testing.T) {
	for in, want := range map[string]string{
		`{}`:  `{"x":{"n":1}}`,
		`{ }`: `{ "x":{"n":1}}`,
		`{"a":1.50,"b":[ 12345678901234567890 ]}`:       `{"a":1.50,"b":[ 12345678901234567890 ],"x":{"n":1}}`,
		" {\"a\" : \"}\"\n}\n":                          " {\"a\" : \"}\"\n,\"x\":{\"n\":1}}\n",
		`{"x":"a lie","a":1}`:                           `{"a":1,"x":{"n":1}}`,
		`{"a":1, "\u0078":"a lie" , "b":{"x":2},"x":3}`: `{"a":1,"b":{"x":2},"x":{"n":1}}`,
		`{"x":1}`: `{"x":{"n":1}}`,
	} {
		if got := string(With([]byte(in), "x", []byte(`{"n":1}`))); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

func FuzzWithMember(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1}`, `{"x":1,"b":"}"}`, `{"\u0078":1 , "y":{}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if !IsObject(in) {
			return
		}
		got := With(in, "x", []byte(`true`))
		seen := 0
		if !Members(got, func(key string, value []byte) {
			if key == "x" && string(value) == "true" {
				seen++
			} else if key == "x" {
				t.Errorf("%q kept what the server said: %q", in, got)
			}
		}) || seen != 1 {
			t.Errorf("%q became %q", in, got)
		}
		var before, after map[string]json.RawMessage
		if json.Unmarshal(in, &before) != nil || json.Unmarshal(got, &after) != nil {
			return
		}
		for key, value := range before {
			if key != "x" && string(after[key]) != string(value) {
				t.Errorf("%q: the member %q became %q", in, key, after[key])
			}
		}
	})
}
