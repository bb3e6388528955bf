package plainjson

import (
	"encoding/json"
	"testing"
)

func TestNothingIsEscapedForHTML(t *testing.T) {
	v := map[string]any{"a": "<b> & \u2028", "raw": json.RawMessage(`{"n":1.0,"t":"<"}`)}
	const want = `{"a":"<b> & \u2028","raw":{"n":1.0,"t":"<"}}`
	if got, err := Marshal(v); err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := Line(v); err != nil || string(got) != want+"\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestTrailingLineFeedOfAStringIsKept(t *testing.T) {
	if got, err := Marshal("a\n"); err != nil || string(got) != `"a\n"` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestUnencodableValueIsAnError(t *testing.T) {
	if got, err := Marshal(func() {}); err == nil || got != nil {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := Line(json.RawMessage(`{`)); err == nil || got != nil {
		t.Errorf("%s, %v", got, err)
	}
}
