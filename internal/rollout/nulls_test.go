package rollout

import (
	"testing"

	"github.com/callyard/callyard/internal/episode"
)

// TestNullsForOptionalArgumentsFromTRLAreRemoved covers the values that TRL 1.16 sends for parameters that a
// model omitted.
func TestNullsForOptionalArgumentsFromTRLAreRemoved(t *testing.T) {
	tools := []episode.Tool{{Name: "update", InputSchema: []byte(`{"type":"object","required":["todos"],"properties":{
		"todos":{"type":"array"},"format":{"type":"string"},"kind":{"enum":["a"]},"limit":{"type":["integer","null"]},"tag":{"anyOf":[{"type":"string"},{"type":"null"}]},
		"size":{"oneOf":[{"type":"string"},{"type":"integer"}]},"any":{}}}`)}}
	for _, c := range []struct{ tool, input, want string }{
		{"update", `{"todos":["x"],"format":null}`, `{"todos":["x"]}`},
		{"update", `{"todos":["x"],"size":null}`, `{"todos":["x"]}`},
		{"update", `{"todos":["null"],"format":"null"}`, `{"todos":["null"],"format":"null"}`},
		{"update", `{"todos":null}`, `{"todos":null}`},                                                                     // required, so the call remains invalid
		{"update", `{"limit":null,"tag":null,"any":null,"kind":null}`, `{"limit":null,"tag":null,"any":null,"kind":null}`}, // allows null, or has no type
		{"update", `{"unknown":null}`, `{"unknown":null}`},
		{"other", `{"format":null}`, `{"format":null}`},
		{"update", `null`, `null`},
		{"update", `{"format":null`, `{"format":null`},
	} {
		if got := string(withoutNulls([]byte(c.input), tools, c.tool)); got != c.want {
			t.Errorf("%s of %s is %s, want %s", c.input, c.tool, got, c.want)
		}
	}
}
