package rawjson

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// FuzzObjectsAreReadLikeEncodingJSON compares with the standard library: the validity of
// objects, and the names and values of their members, the last of each name.
func FuzzObjectsAreReadLikeEncodingJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"b":[{"c":null}]}`, ` { "\u0061" : 7, "a":{"":true} } `, `{"id":1,"id":2}`, `{}`, `[]`, `{"a":01}`, `{"a":1e+}`, `{"a" 1}`, `{"a":1,}`,
		`{"a":"\ud800"}`, "{\"\xff\":1}", `{"a":1}{"b":2}`, `{"a":"12345678\"901234567\\"}`, `{"a":[[[[{"b":[{}]}]]]]}`, `{`, ``,
		` [1 , "a",{"b":[]} ] `, `[1,]`, `[1 2]`, `[1]]`, `[`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		compareListWithEncodingJSON(t, text)
		got := map[string]string{}
		ok := Members(text, func(name string, value []byte) { got[name] = string(value) })
		want := json.Valid(text) && bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{"))
		if ok != want || IsObject(text) != want {
			t.Fatalf("%q: Members says %v, IsObject %v, want %v", text, ok, IsObject(text), want)
		}
		if !want {
			return
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		have := map[string]string{}
		for name, value := range fields {
			have[name] = string(value)
			if known := string(Get(text, name)); known != string(value) && !strings.ContainsRune(name, '\ufffd') {
				t.Errorf("Get(%q, %q) is %q", text, name, known)
			}
			if is, ok := Text(value); ok {
				var said string
				if json.Unmarshal(value, &said) != nil || strings.ToValidUTF8(is, "\ufffd") != strings.ToValidUTF8(said, "\ufffd") && !strings.ContainsRune(said, '\ufffd') {
					t.Errorf("Text(%s) is %q, want %q", value, is, said)
				}
			}
		}
		for name := range got {
			if strings.ToValidUTF8(name, "?") != name {
				return // encoding/json replaces invalid UTF-8, so that different names become equal
			}
		}
		if diff := cmp.Diff(have, got); diff != "" {
			t.Errorf("members of %q (-encoding/json +ours):\n%s", text, diff)
		}
	})
}

func compareListWithEncodingJSON(t *testing.T, text []byte) {
	t.Helper()
	var got []string
	ok := Elements(text, func(from, to int) { got = append(got, string(text[from:to])) })
	want := json.Valid(text) && bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("["))
	if ok != want {
		t.Fatalf("%q: Elements says %v, want %v", text, ok, want)
	}
	var items []json.RawMessage
	if !want || json.Unmarshal(text, &items) != nil {
		return
	}
	have := make([]string, 0, len(items))
	for _, item := range items {
		have = append(have, string(item))
	}
	if diff := cmp.Diff(strings.Join(have, "\n"), strings.Join(got, "\n")); diff != "" {
		t.Errorf("elements of %q (-encoding/json +ours):\n%s", text, diff)
	}
}

func TestDeepNestingIsRefusedInBoundedMemory(t *testing.T) {
	var s Scanner
	s.Reset([]byte(strings.Repeat("[", 5_000_000)))
	if s.Value() || len(s.more) > MaxNesting/64 {
		t.Errorf("five million open brackets passed, or %d words were kept", len(s.more))
	}
	for _, open := range []string{"[", `{"a":`} {
		end := map[string]string{"[": "]", `{"a":`: "}"}[open]
		for depth, want := range map[int]bool{63: true, 64: true, 65: true, 128: true, 129: true, MaxNesting: true, MaxNesting + 1: false} {
			s.Reset([]byte(strings.Repeat(open, depth) + "[1]"[:3] + strings.Repeat(end, depth)))
			if got := s.Value() && s.End(); got != (want && depth < MaxNesting) {
				t.Errorf("%d times %s: %v", depth, open, got)
			}
		}
	}
}

func TestObjectStopsWhenAMemberIsRejected(t *testing.T) {
	var s Scanner
	s.Reset([]byte(`{"a":1,"b":2,"c":3}`))
	var seen []string
	if s.Object(func(name string) bool { seen = append(seen, name); return s.Value() && name != "b" }) || !cmp.Equal(seen, []string{"a", "b"}) {
		t.Errorf("%v", seen)
	}
}

func TestWithoutRemovesOnlyTheNamedMembers(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1, "b" : 2 ,"c":[ 3 ]}`: `{"a":1,"c":[ 3 ]}`, `{"b":1}`: `{}`, `{"b":1,"b":2,"a":3}`: `{"a":3}`, `{}`: `{}`, ` {"a": 1.50 }`: `{"a": 1.50}`,
	} {
		if got := string(Without([]byte(in), "b", "x")); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

func TestTextRoundTrips(t *testing.T) {
	for _, text := range []string{"", "plain", "a \"b\" \\", "\n\x00", "\u00e9\u20ac\U0001F600", "</script>"} {
		if got, ok := Text(AppendText(nil, text)); !ok || got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := string(AppendMember(AppendMember([]byte("{"), "a", []byte("1")), "b", []byte("2"))); got != `{"a":1,"b":2` {
		t.Error(got)
	}
}

func TestCommonMemberNamesAreReadWithoutAllocation(t *testing.T) {
	call := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi","deep":[[1]]}}}`)
	if n := testing.AllocsPerRun(100, func() { Members(call, func(string, []byte) {}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkMembers compares with jsontext, on the members of a call of 0.3 KB and of a
// result of 64 KB.
func BenchmarkMembers(b *testing.B) {
	call := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"message":"` + strings.Repeat("x", 200) + `","n":[1,2.5,true]}}}`)
	result := []byte(`{"content":[` + strings.Repeat(`{"type":"text","text":"a line of text that a tool said, with \"quotes\" and \u00e9"},`, 750) + `{}],"isError":false}`)
	for name, text := range map[string][]byte{"call": call, "result": result} {
		b.Run(name+"/rawjson", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				if !Members(text, func(string, []byte) { n++ }) || n == 0 {
					b.Fatal(n)
				}
			}
		})
		options := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
		var from bytes.Buffer
		kept := jsontext.NewDecoder(&from, options...)
		for kind, decoder := range map[string]func() *jsontext.Decoder{
			"jsontext":       func() *jsontext.Decoder { kept.Reset(&from, options...); return kept },
			"jsontext-fresh": func() *jsontext.Decoder { return jsontext.NewDecoder(&from, options...) },
		} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					from = *bytes.NewBuffer(text)
					if n, err := membersOf(decoder()); err != nil || n == 0 {
						b.Fatal(n, err)
					}
				}
			})
		}
	}
}

// membersOf reads the members of an object and returns their number.
func membersOf(d *jsontext.Decoder) (n int, err error) {
	if _, err = d.ReadToken(); err != nil {
		return 0, err
	}
	for ; d.PeekKind() != '}'; n++ {
		if _, err = d.ReadToken(); err != nil {
			return n, err
		}
		if _, err = d.ReadValue(); err != nil {
			return n, err
		}
	}
	_, err = d.ReadToken()
	return n, err
}
