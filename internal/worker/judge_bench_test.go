package worker

import (
	"testing"

	"github.com/callyard/callyard/pkg/bus"
)

// BenchmarkJudgeLowRisk measures the cost of the second check for a call that needs no approval.
// Only calls that need an approval have signatures to verify.
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
