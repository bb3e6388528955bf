package catalog

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A server that writes "yes" for true had none of its tools, and the log spoke of names.
func TestHintThatIsNotABooleanCountsAsAbsent(t *testing.T) {
	type hints struct{ ReadOnly, Destructive, Idempotent, OpenWorld bool }
	dangerous := hints{Destructive: true, OpenWorld: true}
	for annotations, want := range map[string]hints{
		`{"readOnlyHint":"yes"}`:                       dangerous,
		`{"readOnlyHint":"yes","openWorldHint":false}`: {Destructive: true},
		`{"readOnlyHint":true,"destructiveHint":null}`: {ReadOnly: true, OpenWorld: true},
		`{"destructiveHint":false,"idempotentHint":1}`: {OpenWorld: true},
		`{"readOnlyHint":true,"destructiveHint":true}`: {ReadOnly: true, Destructive: true, OpenWorld: true},
		`null`: dangerous,
		`[]`:   dangerous,
	} {
		d := read("s", tools(`{"name":"a","inputSchema":{"type":"object"},"annotations":`+annotations+`}`), nil, slog.New(slog.DiscardHandler))
		tool := d.tools["a"]
		if tool == nil {
			t.Errorf("%s: the tool is missing", annotations)
			continue
		}
		got := hints{tool.ReadOnly, tool.Destructive, tool.Idempotent, tool.OpenWorld}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", annotations, diff)
		}
	}
}
