package worker

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/pkg/schema"
)

func TestUnusableRetryRuleIsLoggedOnce(t *testing.T) {
	rule, off := &schema.Retry{Attempts: 2}, &schema.Retry{Attempts: 1}
	for name, x := range map[string]struct {
		entry config.ServerEntry
		want  []string
	}{
		"no tool is safe": {config.ServerEntry{TrustAnnotations: true, Retry: rule}, []string{"no tool of the server is safe"}},
		"some are":        {config.ServerEntry{SafeTools: []string{"us*"}, Retry: rule}, nil},
		"for single tools": {config.ServerEntry{SafeTools: []string{"us*"}, ToolRetry: map[string]*schema.Retry{"usual": rule, "plain": rule, "broken": off, "none": rule}},
			[]string{"the tool is not safe to repeat (safeTools, or trusted hints of the tool)\" server=r tool=plain", "does not have\" server=r tool=none"}},
	} {
		h := holdsReport(t, "")
		x.entry.ID, h.served.Entry = "r", x.entry
		var lines bytes.Buffer
		log := slog.New(slog.NewTextHandler(&lines, nil))
		for range 3 {
			s := h.snapshot()
			s.ID, s.TrustAnnotations, s.SafeTools = "r", x.entry.TrustAnnotations, x.entry.SafeTools
			if h.rules(&s, log); s.Retry != x.entry.Retry || len(s.ToolRetry) != len(x.entry.ToolRetry) {
				t.Errorf("%s: it announces %+v", name, s)
			}
		}
		if n := strings.Count(lines.String(), "\n"); n != len(x.want) {
			t.Errorf("%s: %d lines:\n%s", name, n, lines.String())
		}
		for _, want := range x.want {
			if !strings.Contains(lines.String(), want) {
				t.Errorf("%s: no %s in\n%s", name, want, lines.String())
			}
		}
	}
}
