package pintable_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/store/pintable"
	"github.com/callyard/callyard/pkg/schema"
)

func TestARowKeepsTheBytesOfADefinition(t *testing.T) {
	for _, definition := range []string{`{ "name" : "a", "x": 9007199254740993, "x": 1.0 }`, `{"description":"<b>&\u2028"}`} {
		was := pintable.Server{ID: "s", Recorded: time.Unix(1, 0).UTC(), Tools: map[string]pintable.Pin{
			"a": {Definition: json.RawMessage(definition), Digest: schema.Digest([]byte(definition)), By: "ops", At: time.Unix(2, 0).UTC()},
		}}
		text, err := json.Marshal(was)
		if err != nil {
			t.Fatal(err)
		}
		var is pintable.Server
		if err := json.Unmarshal(text, &is); err != nil {
			t.Fatal(err)
		}
		pin := is.Tools["a"]
		if string(pin.Definition) != definition || pin.Digest != was.Tools["a"].Digest || pin.By != "ops" || !pin.At.Equal(was.Tools["a"].At) {
			t.Errorf("%s became %s, %+v", definition, pin.Definition, pin)
		}
	}
}
