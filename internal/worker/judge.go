package worker

import (
	"encoding/json"
	"time"

	"github.com/callyard/callyard/internal/warrant"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// spentWarrants is the number of used warrants that a worker remembers. If that many have not yet
// expired, the worker refuses more approved calls.
const spentWarrants = 1 << 17

// verdict is the result of judge for a call that may run.
type verdict struct {
	warrant *warrant.Claims // nil if the call needed no approval
	// sandboxed means that the call runs in its own container or sandbox, and container that
	// weaker isolation than a container is not allowed. level is the risk level, and
	// definition is the tool as it was judged.
	sandboxed  bool
	container  bool
	level      int
	definition json.RawMessage
}

// judge checks whether the call may run here. It returns the reason if the call must not run;
// a refused call did not start. The front door has checked the call before. This second check uses
// the worker's own copy of the policy, so that a call on another path is checked as well. A call
// that needs an approval must have a warrant for exactly this call. judge returns its claims and
// marks the warrant as used. A call of high risk runs in a container or not at all.
func (w *Worker) judge(h *held, f *bus.CallFrame) (verdict, *schema.Error) {
	if h == nil {
		return verdict{}, schema.Errorf(schema.KindUnavailable, "Worker %s does not run server %q.", w.id, f.Server)
	}
	only := h.sandboxed != nil && h.sandboxed.sandbox.Only
	switch f.Method {
	case "", schema.MethodCallTool:
	case schema.MethodReadResource, schema.MethodGetPrompt, schema.MethodComplete:
		call := &schema.Call{
			Method: f.Method, Server: f.Server, Arguments: f.Payload,
			Principal: schema.Principal{Name: f.Principal, Owner: f.Owner, Groups: f.Groups, Tenant: f.Tenant},
		}
		if e := risk.CheckMethod(w.o.Policy, h.served.Risk, only, call); e != nil {
			return verdict{}, e
		}
		if only {
			return verdict{sandboxed: true}, h.sandboxed.ready()
		}
		return verdict{}, nil
	default:
		// A server may be lenient about method names; the policy is not.
		return verdict{}, schema.Errorf(schema.KindInvalidRequest, "Worker %s does not run the method of this call; it runs tools, reads resources, gets prompts and completes arguments.", w.id)
	}
	if h.served.Session.Pinned && f.ToolDigest == "" {
		return verdict{}, schema.Errorf(schema.KindConflict, "Server %q has pin: quarantine, and the call names no definition of its tool; it was not run. Upgrade the front door.", f.Server)
	}
	call := &schema.Call{
		Server: f.Server, Tool: f.Tool, Arguments: f.Payload,
		Principal: schema.Principal{Name: f.Principal, Owner: f.Owner, Groups: f.Groups, Tenant: f.Tenant},
	}
	var definition json.RawMessage
	if w.o.Policy != nil {
		definition = h.definition(f.Tool)
	}
	a := risk.Assess(w.o.Policy, h.served.Risk, h.served.TrustAnnotations, definition, call)
	v := verdict{sandboxed: only || a.Level >= risk.High || a.Sandbox != "", container: a.Container, level: a.Level}
	if only {
		v.level = risk.High // overrides any rule for this tool
	}
	if a.Deny {
		return v, schema.Errorf(schema.KindForbidden, "The policy of worker %s forbids this call: %s", w.id, risk.JoinReasons(a.Reasons))
	}
	if v.sandboxed {
		if refusal := w.sandboxFault(h, f, &v); refusal != nil {
			return v, refusal
		}
	}
	if a.Approval == nil {
		return v, nil
	}
	var refusal *schema.Error
	v.warrant, refusal = w.approved(h, f, &a)
	return v, refusal
}

// sandboxFault returns the reason why the call cannot run in a container here, or nil. Another
// worker may have a container. It is called before a warrant is used up.
func (w *Worker) sandboxFault(h *held, f *bus.CallFrame, v *verdict) *schema.Error {
	if h.sandboxed != nil && v.container && h.sandboxed.sandbox.Isolation != schema.IsolationContainer {
		return noSandbox("The policy requires a container, and worker %s runs calls of server %q in weaker isolation (%s); the call was not run.", w.id, f.Server, h.sandboxed.sandbox.Isolation)
	}
	if h.sandboxed == nil {
		return noSandbox("The call must run in a container, and worker %s has none for server %q; it was not run with weaker isolation. Add a docker section with an image to the server's entry.", w.id, f.Server)
	}
	if refusal := h.sandboxed.ready(); refusal != nil {
		return refusal
	}
	if v.definition = h.definition(f.Tool); v.definition == nil {
		return noSandbox("Worker %s does not know the tool %q of server %q, so it cannot check that the sandbox has the same definition; the call was not run.", w.id, f.Tool, f.Server)
	}
	return nil
}

// approved checks the warrant against the call and marks it as used.
func (w *Worker) approved(h *held, f *bus.CallFrame, a *risk.Assessment) (*warrant.Claims, *schema.Error) {
	now := time.Now()
	claims, refusal := w.o.Trust.Admit(f.Warrant, &warrant.Use{
		ApprovalID: f.Approval, CallID: f.ID, Server: f.Server, Tool: f.Tool, Definition: h.definition(f.Tool), Arguments: f.Payload,
		Requester: f.Principal, Owner: f.Owner, Level: a.Level, Rule: a.Approval,
	}, now)
	if refusal == nil {
		refusal = w.spent.Take(claims, now)
	}
	if refusal != nil {
		w.log.Warn("a call that needs an approval was refused", "call", f.ID, "server", f.Server, "tool", f.Tool, "reason", refusal.Detail)
		return nil, refusal
	}
	return claims, nil
}

// warnWithoutTrust logs a warning at the start if approved calls cannot run.
func (w *Worker) warnWithoutTrust() {
	if w.o.Trust.Empty() {
		w.log.Warn("this worker trusts no warrant keys and refuses every call that needs an approval; set warrants.people_keys and warrants.caller_keys to the public keys of the approver and of the front doors (callyard keys warrant creates a pair)")
	}
}

// definitions holds the tools with one digest, by name.
type definitions struct {
	digest  string
	tools   map[string]json.RawMessage
	outputs outputs
}

// definition returns the definition of a tool as the server sent it, or nil if the tool is not
// known.
func (h *held) definition(tool string) json.RawMessage { return h.known().tools[tool] }

// known returns the current version of the server's tools.
func (h *held) known() *definitions {
	raw, digest := h.definitions()
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
	return known
}
