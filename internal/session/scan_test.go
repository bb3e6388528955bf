package session

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/kit/rawjson"
)

var scanSeeds = []string{
	`{"jsonrpc":"2.0","id":4294967296,"result":{"content":[{"type":"text","text":"hi"}],"isError":true}}`,
	`{"result":{"resultType":"input_required"},"id":"x"}`,
	`{"id":1,"error":{"code":-32601,"message":"no\u0020such"}}`,
	`{"method":"notifications/progress","params":{"progressToken":4294967297,"progress":1.5e3}}`,
	` { "id" : null , "\u0069d" : 7, "result":{"is\u0045rror":true} } `,
	`{"id":1,"id":2,"result":{},"result":[1,{"a":[]},"b"]}`,
	`{}`, `[]`, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":1e+}`, `{"a":tru}`, `{"a" 1}`, `{"a":1,}`, `{"a":[1,]}`,
	"{\"a\":\"\x01\"}", `{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":"12345678\"901234567\\"}`, `{"a":"` + "\xff\xfe" + `"}`,
	`{"a":1}{"b":2}`, `{"a":[[[[{"b":[{}]}]]]]}`, `{"a":"`, `{`, ``, `nul`, "{\"a\":\"é€😀 abcdefgh\"}",
}

// FuzzScannerAgreesWithEncodingJSON compares the scanner with the standard library: which texts
// are frames, and the values of their members.
func FuzzScannerAgreesWithEncodingJSON(f *testing.F) {
	for _, seed := range scanSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got frame
		var s scanner
		ok := s.frame(text, &got)
		want := json.Valid(text) && bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{"))
		if ok != want {
			t.Fatalf("frame(%q) = %v, want %v", text, ok, want)
		}
		if rawjson.IsObject(text) != want {
			t.Fatalf("rawjson.IsObject(%q) = %v, want %v", text, !want, want)
		}
		if !want {
			return
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatalf("encoding/json: %v", err)
		}
		for key, part := range map[string][]byte{"id": got.id, "method": got.method, "params": got.params, "result": got.result, "error": got.fault} {
			if diff := cmp.Diff(string(fields[key]), string(part)); diff != "" {
				t.Errorf("member %q (-encoding/json +scanner):\n%s", key, diff)
			}
		}
		var result map[string]json.RawMessage
		if json.Unmarshal(fields["result"], &result) == nil {
			if toolError := string(result["isError"]) == "true"; toolError != got.toolError {
				t.Errorf("isError = %v, want %v", got.toolError, toolError)
			}
			if diff := cmp.Diff(string(result["resultType"]), string(got.resultType)); diff != "" {
				t.Errorf("resultType (-encoding/json +scanner):\n%s", diff)
			}
		}
	})
}

func TestDeepNestingIsRefusedInLinearTime(t *testing.T) {
	var s scanner
	var f frame
	deep := `{"id":1,"result":{"a":` + strings.Repeat("[", 5_000_000)
	if s.frame([]byte(deep), &f) {
		t.Error("five million open brackets passed as a frame")
	}
	fine := `{"id":1,"result":{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}}`
	if !s.frame([]byte(fine), &f) || f.result == nil {
		t.Error("nesting of 9,000 did not pass")
	}
}

func TestOwnRequestIDsAreRecognized(t *testing.T) {
	for text, want := range map[string]int64{
		"4294967296": firstID, "4294967297": firstID + 1, "4.294967297e9": firstID + 1, "4294967298.0": firstID + 2,
		"1": 0, `"4294967296"`: 0, "null": 0, "": 0, "99999999999999999999": 0, "-4294967296": 0, "4294967296.5": 0, "1e400": 0,
	} {
		if got := ownRequestID([]byte(text)); got != want {
			t.Errorf("ownRequestID(%s) = %d, want %d", text, got, want)
		}
	}
}

func BenchmarkFrame(b *testing.B) {
	line := []byte(`{"result":{"content":[{"type":"text","text":"Echo: ` + strings.Repeat("x", 200) + `"}]},"jsonrpc":"2.0","id":4294967296}`)
	var s scanner
	var f frame
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if !s.frame(line, &f) {
			b.Fatal("not a frame")
		}
	}
}
