package worker

import (
	"encoding/json"
	"strings"

	"github.com/callyard/callyard/internal/admission"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// judge says why the call must not run here, nil where it may; a call that is
// refused did not start. The front door has judged it before: this is the second
// look, with this worker's own copy of the policy, so that a call that came
// another way is judged as well.
func (w *Worker) judge(h *held, f *bus.CallFrame) *schema.Error {
	if h == nil {
		return schema.Errorf(schema.KindUnavailable, "Worker %s does not hold server %q.", w.id, f.Server)
	}
	if f.Method != "" && f.Method != schema.MethodCallTool {
		return nil
	}
	call := &schema.Call{
		Server: f.Server, Tool: f.Tool, Arguments: f.Payload,
		Principal: schema.Principal{Name: f.Principal, Owner: f.Owner, Groups: f.Groups},
	}
	var definition json.RawMessage
	if w.o.Policy != nil {
		definition = h.definition(f.Tool)
	}
	a := admission.Assess(w.o.Policy, h.served.Risk, h.served.TrustAnnotations, definition, call)
	switch {
	case a.Deny:
		return schema.Errorf(schema.KindForbidden, "The policy of worker %s forbids this call: %s", w.id, strings.Join(a.Reasons, "; "))
	case a.Level >= risk.High || a.Sandbox != "":
		return schema.Errorf(schema.KindForbidden, "Worker %s cannot run this call in a container, and does not run it with less.", w.id)
	case a.Approval != nil && f.Approval == "":
		return schema.Errorf(schema.KindForbidden, "This call came to worker %s without the approval that it needs.", w.id)
	}
	return nil
}

// definitions are the tools of one digest by name.
type definitions struct {
	digest string
	tools  map[string]json.RawMessage
}

// definition returns the definition of a tool as the server sent it, nil where it
// is not known.
func (h *held) definition(tool string) json.RawMessage {
	raw, digest := h.pool.Definitions()
	known := h.tools.Load()
	if known == nil || known.digest != digest {
		known = &definitions{digest: digest, tools: make(map[string]json.RawMessage)}
		if raw != nil {
			for _, def := range raw.Tools {
				var head struct {
					Name string `json:"name"`
				}
				if json.Unmarshal(def, &head) == nil && known.tools[head.Name] == nil {
					known.tools[head.Name] = def
				}
			}
		}
		h.tools.Store(known)
	}
	return known.tools[tool]
}
