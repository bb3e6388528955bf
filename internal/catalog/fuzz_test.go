package catalog

import (
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/callyard/callyard/pkg/bus"
)

func FuzzServerDefinitionsAreListedOrOmitted(f *testing.F) {
	for _, seed := range []string{
		`{"digest":"sha256:x","definitions":{"tools":[{"name":"echo","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}],"resources":[{"uri":"a"}],"prompts":[]}}`,
		`{"definitions":{"tools":[{"name":"a"},{"name":"a"},{"name":""},null,1,{"name":{}},{"name":"b","annotations":[]}]}}`, `{"definitions":null}`, `{"definitions":{"tools":null}}`, `[]`,
		`{"definitions":{"tools":[{"name":"a","description":"< b"}]}}`,
	} {
		f.Add([]byte(seed))
	}
	log := slog.New(slog.DiscardHandler)
	f.Fuzz(func(t *testing.T, text []byte) {
		var d bus.Description
		if json.Unmarshal(text, &d) != nil {
			return
		}
		written := d.Encode()
		var again bus.Description
		if err := json.Unmarshal(written, &again); err != nil || again.Digest != d.Digest {
			t.Fatalf("%q is written as %q: %v", text, written, err)
		}
		if d.Definitions == nil {
			return
		}
		read := read("server", d.Definitions, nil, log)
		if len(read.order) != len(read.tools) || len(read.tools) > len(d.Definitions.Tools) {
			t.Fatalf("%q has %d tools in order, and %d by name", text, len(read.order), len(read.tools))
		}
		for name, tool := range read.tools {
			if name == "" || tool.Name != name || !json.Valid(tool.Raw) {
				t.Fatalf("%q has the tool %q as %q", text, name, tool.Raw)
			}
		}
	})
}
