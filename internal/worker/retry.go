package worker

import (
	"encoding/json"
	"log/slog"
	"maps"
	"slices"

	"github.com/callyard/callyard/pkg/schema"
)

// rules sets the retry rules of a server, and logs unused rules once for each version of its tools.
// Only a tool that is safe to repeat is ever repeated.
func (h *held) rules(s *schema.Server, log *slog.Logger) {
	e := &h.served.Entry
	s.Retry, s.ToolRetry = e.Retry, e.ToolRetry
	if s.Retry == nil && len(s.ToolRetry) == 0 || s.Digest == "" {
		return
	}
	known := h.known()
	if said := h.rulesOf.Swap(&known.digest); said != nil && *said == known.digest {
		return
	}
	safe := 0
	unsafe := make(map[string]bool)
	for name, definition := range known.tools {
		if s.SafeToRepeat(toolOf(name, definition)) {
			safe++
		} else {
			unsafe[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.ToolRetry)) {
		switch {
		case s.ToolRetry[name].Attempts < 2:
		case known.tools[name] == nil:
			log.Warn("a retry rule names a tool that the server does not have", "server", s.ID, "tool", name)
		case unsafe[name]:
			log.Warn("a retry rule is not used: the tool is not safe to repeat (safeTools, or trusted hints of the tool)", "server", s.ID, "tool", name)
		}
	}
	if s.Retry != nil && s.Retry.Attempts > 1 && safe == 0 {
		log.Warn("a retry rule is not used: no tool of the server is safe to repeat (safeTools, or trusted hints of its tools)", "server", s.ID)
	}
}

// toolOf returns the fields of a tool that decide whether it is safe to repeat.
func toolOf(name string, definition json.RawMessage) *schema.Tool {
	var head struct {
		Annotations struct {
			ReadOnly   bool `json:"readOnlyHint"`
			Idempotent bool `json:"idempotentHint"`
		} `json:"annotations"`
	}
	_ = json.Unmarshal(definition, &head) // a definition that cannot be read has no hints
	return &schema.Tool{Name: name, ReadOnly: head.Annotations.ReadOnly, Idempotent: head.Annotations.Idempotent}
}
