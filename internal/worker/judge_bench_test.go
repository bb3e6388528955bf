package worker

import (
	"testing"

	"github.com/callyard/callyard/pkg/bus"
)

// BenchmarkJudgeLowRisk is what the second look costs a call that needs no
// approval: signatures are for held calls only.
func BenchmarkJudgeLowRisk(b *testing.B) {
	w := &Worker{id: "w"}
	h := &held{}
	f := &bus.CallFrame{
		ID: "call_1", Server: "s", Tool: "echo", Principal: "ci", Owner: "team", Groups: []string{"a"}, ToolDigest: "sha256:00",
		Payload: []byte(`{"text":"hello"}`),
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, refusal := w.judge(h, f); refusal != nil {
			b.Fatal(refusal)
		}
	}
}
