package risk_test

import (
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/risk"
)

func TestEscalateAfter(t *testing.T) {
	since := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	expires := since.Add(time.Hour)
	rule := risk.Approval{By: risk.ByGroups, Groups: []string{"ops"}, EscalateTo: []string{"board"}}
	if at := rule.EscalatesAt(since, expires); !at.Equal(since.Add(30 * time.Minute)) {
		t.Errorf("without a time of its own: %s", at)
	}
	rule.EscalateAfter = 10 * time.Minute
	if at := rule.EscalatesAt(since, expires.Add(time.Hour)); !at.Equal(since.Add(10 * time.Minute)) {
		t.Errorf("with ten minutes, extended: %s", at)
	}
	rule.EscalateTo = nil
	if at := rule.EscalatesAt(since, expires); !at.IsZero() {
		t.Errorf("with nobody to ask: %s", at)
	}
	for text, want := range map[string]string{
		"{groups: [ops], expires: 10m, escalate_to: [board], escalate_after: 5m}":  "",
		"{groups: [ops], expires: 10m, escalate_to: [board], escalate_after: 10m}": "must be shorter than expires (10m0s)",
		"{groups: [ops], escalate_after: 5m}":                                      "add escalate_to",
		"{by: caller, escalate_after: 5m}":                                         "is for approvals by groups",
		"{groups: [ops], escalate_to: [board], escalate_after: soon}":              "escalate_after",
	} {
		_, err := risk.Parse([]byte("rules:\n  - name: a\n    match: {tool: x}\n    approval: "+text+"\n"), "p.yaml")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
