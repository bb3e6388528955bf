package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/callyard/callyard/pkg/schema"
)

func TestStrictObjectsAreAccepted(t *testing.T) {
	for _, raw := range []string{
		`{}`,
		" \t\r\n{ } \n",
		`{"a":1}`,
		`{"a":{"a":{"a":[]}},"b":[1,-0,0.5,1e9,1E+9,-1.25e-3,true,false,null,"x",{},[[]]]}`,
		`{"":0," ":0}`,
		`{"big":123456789012345678901234567890,"exp":1e999999}`,
		`{"text":"\"\\\/\b\f\n\r\t\u00e9 \ud83d\ude00 é 😀 \u0000 "}`,
		`{"A":1,"a":2}`,
		`{"a":1,"a\u0000":2,"a\n":3}`,
		`{"a":{"x":1},"b":{"x":1}}`,
	} {
		if err := Arguments([]byte(raw), 0, 0); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestSyntaxFaultsAreReportedWithTheirOffset(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{``, "a value is missing, at byte 0"},
		{`  `, "a value is missing, at byte 2"},
		{"\xef\xbb\xbf{}", "a byte order mark is not allowed, at byte 0"},
		{`[]`, "are an array, at byte 0"},
		{` "x"`, "are a string, at byte 1"},
		{`null`, "are null, at byte 0"},
		{`true`, "are a boolean"},
		{`-1`, "are a number"},
		{`{}{}`, "unexpected data follows the value, at byte 2"},
		{`{} x`, "unexpected data follows the value, at byte 3"},
		{`{`, "a property name in double quotes is missing, at byte 1"},
		{`{"a"`, "a colon after the property name is missing, at byte 4"},
		{`{"a":`, "a value is missing, at byte 5 (/a)"},
		{`{"a":1`, "the text ends too early, at byte 6"},
		{`{"a":1,}`, "a property name in double quotes is missing, at byte 7"},
		{`{'a':1}`, "a property name in double quotes is missing, at byte 1"},
		{`{"a":[1,]}`, "a value cannot begin with this character, at byte 8 (/a/1)"},
		{`{"a":[1 2]}`, "a comma or a closing bracket is missing, at byte 8"},
		{`{"a":01}`, "a comma or a closing bracket is missing, at byte 6"},
		{`{"a":-}`, "a number has no digit here, at byte 6 (/a)"},
		{`{"a":1.}`, "a number has no digit after its point, at byte 7 (/a)"},
		{`{"a":1e}`, "a number has no digit in its exponent, at byte 7 (/a)"},
		{`{"a":.5}`, "a value cannot begin with this character, at byte 5 (/a)"},
		{`{"a":+1}`, "a value cannot begin with this character, at byte 5 (/a)"},
		{`{"a":NaN}`, "a value cannot begin with this character, at byte 5 (/a)"},
		{`{"a":nul}`, "a value cannot begin with this character, at byte 5 (/a)"},
		{`{"a":"x`, "a string does not end, at byte 7 (/a)"},
		{`{"a":"\`, "a string does not end, at byte 6 (/a)"},
		{"{\"a\":\"line\nbreak\"}", "a control character in a string is not escaped, at byte 10 (/a)"},
		{"{\"a\":\"\x00\"}", "a control character in a string is not escaped, at byte 6 (/a)"},
		{"{\"a\":\"0123456789\x1f0123456789\"}", "a control character in a string is not escaped, at byte 16 (/a)"},
		{`{"a":"\x41"}`, "an escape sequence is unknown, at byte 6 (/a)"},
		{`{"a":"\u12g4"}`, "an escape sequence needs four hex digits, at byte 6 (/a)"},
		{`{"a":"\u12`, "an escape sequence needs four hex digits, at byte 6 (/a)"},
		{`{"a":"\ud800"}`, "an escaped surrogate has no other half, at byte 6 (/a)"},
		{`{"a":"\udc00"}`, "an escaped surrogate has no other half, at byte 6 (/a)"},
		{`{"a":"\ud800\u0041"}`, "an escaped surrogate has no other half, at byte 6 (/a)"},
		{`{"a":"\ude00\ud83d"}`, "an escaped surrogate has no other half, at byte 6 (/a)"},
		{"{\"a\":\"\xff\"}", "a string is not valid UTF-8, at byte 6 (/a)"},
		{"{\"a\":\"\xed\xa0\x80\"}", "a string is not valid UTF-8, at byte 6 (/a)"},
		{"{\"a\":\"\xc0\x80\"}", "a string is not valid UTF-8, at byte 6 (/a)"},
		{"{\"\xff\":1}", "a string is not valid UTF-8, at byte 2"},
		{`{"a":1,"b":2,"a":3}`, "a property appears twice, at byte 13 (/a)"},
		{`{"a":1,"\u0061":2}`, "a property appears twice, at byte 7 (/a)"},
		{`{"\ud83d\ude00":1,"😀":2}`, "a property appears twice, at byte 18 (/😀)"},
		{`{"x":[{},{"k":{"a/b~":1,"a/b~":2}}]}`, "a property appears twice, at byte 24 (/x/1/k/a~1b~0)"},
	} {
		err := Arguments([]byte(c.raw), 0, 0)
		if schema.KindOf(err) != schema.KindInvalidRequest || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.raw, err, c.want)
		}
	}
}

func TestAnErrorNeverRepeatsAValue(t *testing.T) {
	const secret = "hunter2hunter2"
	for _, raw := range []string{
		`{"password":"` + secret + "\x01" + `"}`,
		`{"a":` + secret + `}`,
		`{"a":"` + secret + `","a":"` + secret + `"}`,
		`["` + secret + `"]`,
		`{"a":["` + secret + `" "` + secret + `"]}`,
	} {
		err := Arguments([]byte(raw), 0, 0)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

func TestSizeAndDepthLimitsAreEnforced(t *testing.T) {
	atLimit := `{"a":[[]]}` // depth 3, 10 bytes
	if err := Arguments([]byte(atLimit), 10, 3); err != nil {
		t.Errorf("at the limits: %v", err)
	}
	if err := Arguments([]byte(atLimit), 9, 3); schema.KindOf(err) != schema.KindTooLarge {
		t.Errorf("a byte over: %v", err)
	}
	err := Arguments([]byte(atLimit), 10, 2)
	if schema.KindOf(err) != schema.KindInvalidRequest || !strings.Contains(err.Error(), "nesting exceeds the limit of 2, at byte 6 (/a/0)") {
		t.Errorf("a level over: %v", err)
	}
	deep := strings.Repeat("[", 1<<19)
	if err := Value([]byte(deep), 0, 0); schema.KindOf(err) != schema.KindInvalidRequest {
		t.Errorf("very deep: %v", err)
	}
}

func TestAPointerToVeryLongNamesStaysShort(t *testing.T) {
	long := strings.Repeat("é", 100_000)
	err := Arguments([]byte(`{"`+long+`":{"`+long+`":x}}`), 0, 0)
	if err == nil || len(err.Error()) > 600 || !utf8.ValidString(err.Error()) {
		t.Fatalf("%d bytes", len(fmt.Sprint(err)))
	}
}

func TestDuplicateKeyIsFoundAmongManyKeys(t *testing.T) {
	for _, n := range []int{2, fewKeys - 1, fewKeys, fewKeys + 1, 1000} {
		for _, pair := range [][2]int{{0, n - 1}, {n / 2, n - 1}, {0, 1}} {
			var b strings.Builder
			b.WriteByte('{')
			for i := range n {
				name := i
				if i == pair[1] {
					name = pair[0]
				}
				fmt.Fprintf(&b, `"k%d":%d,`, name, i)
			}
			text := strings.TrimSuffix(b.String(), ",") + "}"
			if err := Arguments([]byte(text), 0, 0); pair[0] != pair[1] && err == nil {
				t.Errorf("%d keys, twice at %v: accepted", n, pair)
			}
		}
	}
}

func TestGoodArgumentsCostNoAllocation(t *testing.T) {
	raw := []byte(`{"message":"hello \u00e9 wörld","n":[1,2,3,{"x":null}],"deep":{"a":{"b":{"c":true}}}}`)
	if n := testing.AllocsPerRun(100, func() {
		if err := Arguments(raw, 0, 0); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestValueAcceptsAnySingleJSONValue(t *testing.T) {
	for _, raw := range []string{`1`, `"x"`, ` null `, `[1]`, `{"a":[]}`} {
		if err := Value([]byte(raw), 0, 0); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if err := Value([]byte(`1 2`), 0, 0); err == nil {
		t.Error("two values were accepted")
	}
}

// FuzzArguments holds the scanner against encoding/json and a slow reader that
// looks for duplicate keys, lone surrogates and broken UTF-8.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1,"a":2}`, `{"a":"\ud83d\ude00"}`, `[1,2.5e3,-0]`, `{"a":{"\u0061":"\ud800"}}`, "{\"\xff\":1}",
		`"` + strings.Repeat("x", 40) + `\n"`, `{"a":[[[[]]]],"b":null}`, `1e5`, `{"k":tru}`, "\"\x7f\u2028\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		err := Value(raw, len(raw)+1, 1000)
		strict := json.Valid(raw) && utf8.Valid(raw) && !loneSurrogate(raw) && !duplicates(raw)
		if strict && nesting(raw) <= 1000 && err != nil {
			t.Fatalf("%q refused: %v", raw, err)
		}
		if err == nil && !strict {
			t.Fatalf("%q accepted", raw)
		}
		var e *schema.Error
		if err != nil && (!errors.As(err, &e) || e.Kind != schema.KindInvalidRequest) {
			t.Fatalf("%q: %v", raw, err)
		}
		object := err == nil && bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{"))
		if (Arguments(raw, len(raw)+1, 1000) == nil) != object {
			t.Fatalf("%q: Arguments and Value differ", raw)
		}
	})
}

func nesting(raw []byte) int { return bytes.Count(raw, []byte("{")) + bytes.Count(raw, []byte("[")) }

// loneSurrogate reports whether decoding brings in a replacement character that
// the text does not spell itself.
func loneSurrogate(raw []byte) bool {
	var spelled, decoded int
	d := json.NewDecoder(bytes.NewReader(raw))
	for {
		tok, err := d.Token()
		if err != nil {
			break
		}
		if s, ok := tok.(string); ok {
			decoded += strings.Count(s, "\uFFFD")
		}
	}
	spelled = strings.Count(string(raw), "\uFFFD") + strings.Count(strings.ToLower(string(raw)), `\ufffd`)
	// A backslash before \ufffd makes it text; such input is rare enough to spell out.
	spelled -= strings.Count(strings.ToLower(strings.ReplaceAll(string(raw), `\\`, "\x00")), "\x00ufffd")
	return decoded > spelled
}

// duplicates reports a key that appears twice in one object.
func duplicates(raw []byte) bool {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	found := false
	var value func() error
	value = func() error {
		tok, err := d.Token()
		if err != nil {
			return err
		}
		switch tok {
		case json.Delim('{'):
			seen := map[string]bool{}
			for d.More() {
				name, err := d.Token()
				if err != nil {
					return err
				}
				if seen[name.(string)] {
					found = true
				}
				seen[name.(string)] = true
				if err := value(); err != nil {
					return err
				}
			}
			_, err = d.Token()
		case json.Delim('['):
			for d.More() {
				if err := value(); err != nil {
					return err
				}
			}
			_, err = d.Token()
		}
		return err
	}
	if err := value(); err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	return found
}

func BenchmarkArguments(b *testing.B) {
	small := []byte(`{"message":"` + strings.Repeat("hello ", 30) + `"}`)
	var large bytes.Buffer
	large.WriteString(`{"items":[`)
	for i := range 5000 {
		fmt.Fprintf(&large, `{"id":%d,"name":"some name that is here","tags":["a","b"],"ok":true},`, i)
	}
	large.WriteString(`0]}`)
	for _, c := range []struct {
		name string
		raw  []byte
	}{{"echo", small}, {"large", large.Bytes()}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.raw)))
			b.ReportAllocs()
			for b.Loop() {
				if err := Arguments(c.raw, 0, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
