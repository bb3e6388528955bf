package rawjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"
)

func TestReadableReplacesOnlyWhatStrictReadersReject(t *testing.T) {
	for text, want := range map[string]string{
		`"cut \ud83d"`:            `"cut \ufffd"`,
		`"cut \uD83D and \uDE00"`: `"cut \ufffd and \ufffd"`,
		`"\ude00\ud83d"`:          `"\ufffd\ufffd"`,
		`"\ud83d\ud83d\ude00"`:    `"\ufffd\ud83d\ude00"`,
		`"whole \ud83d\ude00"`:    `"whole \ud83d\ude00"`,
		`"a path C:\\ud83d"`:      `"a path C:\\ud83d"`,
		`"\\\ud83d\\"`:            `"\\\ufffd\\"`,
		`"\u00e9 \ud7ff \ue000"`:  `"\u00e9 \ud7ff \ue000"`,
		`{"\udc00":1}`:            `{"\ufffd":1}`,
		"\"\xff\"":                "\"\uFFFD\"",
		`"\ud83`:                  `"\ud83`,
		`\`:                       `\`,
	} {
		given := []byte(text)
		if got := Readable(given); string(got) != want {
			t.Errorf("Readable(%s) = %s, want %s", text, got, want)
		}
		if string(given) != text {
			t.Errorf("the text %s was changed in place", text)
		}
	}
}

// encoding/json replaces the same parts while it decodes.
func FuzzReadableTextDecodesToTheSameValue(f *testing.F) {
	for _, seed := range []string{`"\ud83d"`, `["\\ud83d","\uD83D\uDE00"]`, `{"a\ud800\ud800":"\udc00"}`, `"\u005cud800"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want, got any
		if !utf8.Valid(text) || json.Unmarshal(text, &want) != nil {
			return // encoding/json replaces each byte of a run, and Readable the run
		}
		readable := Readable(text)
		if err := json.Unmarshal(readable, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %v: %v, want %v", readable, err, got, want)
		}
		if !utf8.Valid(readable) || !bytes.Equal(Readable(readable), readable) {
			t.Fatalf("%s can be repaired further", readable)
		}
	})
}
