package tools

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Preflight is the answer to GET /preflight.
type Preflight struct {
	Ready bool            `json:"ready" doc:"Whether every tool is ready."`
	Tools []PreflightTool `json:"tools" nullable:"false" doc:"The tools in the order of the request."`
}

// PreflightTool reports whether one tool is ready.
type PreflightTool struct {
	Server   schema.ServerID `json:"server" doc:"The id of the server." example:"files"`
	Tool     string          `json:"tool" doc:"The name of the tool." example:"read_text"`
	Ready    bool            `json:"ready" doc:"Whether a call can run: the tool is there, enabled, not denied and online, and its definition is the required one."`
	State    string          `json:"state" enum:"ready,missing,unknown,offline,disabled,unaccepted,changed,denied" doc:"ready; missing: there is no such server or tool; unknown: the tools of its server are not known yet; offline: no worker can run it; disabled: it is switched off; unaccepted: nobody has accepted its definition; changed: its definition is not the required one; denied: the policy denies your calls."`
	Reason   string          `json:"reason,omitempty" doc:"The reason that it is not ready."`
	Pinned   bool            `json:"pinned" doc:"Whether its server is pinned, and the definition accepted."`
	Digest   string          `json:"digest,omitempty" doc:"The digest of its definition."`
	Risk     string          `json:"risk,omitempty" enum:"low,medium,high" doc:"The risk of a call without arguments."`
	Decision string          `json:"decision,omitempty" enum:"run,hold,sandbox,deny" doc:"What the policy decides for your call without arguments."`
}

// maxPreflight limits the tools of one request. Programs with more send several requests.
const maxPreflight = 200

// preflight serves GET /preflight.
func (h *searchHandlers) preflight(x *httpapi.Exchange, _ *http.Request) (Preflight, error) {
	asked := x.Query["tool"]
	if len(asked) == 0 || len(asked) > maxPreflight {
		return Preflight{}, schema.Errorf(schema.KindInvalidRequest, "Send 1 to %d parameters tool=SERVER/TOOL; the request has %d.", maxPreflight, len(asked))
	}
	seen, whole := x.Seen(h.catalog), catalog.TenantsOf(h.catalog).Seen(x.Principal.Tenant)
	answer := Preflight{Ready: true, Tools: make([]PreflightTool, 0, len(asked))}
	for _, text := range asked {
		server, name, found := strings.Cut(text, "/")
		name, digest := splitDigest(name)
		if !found || server == "" || name == "" {
			return Preflight{}, schema.Errorf(schema.KindInvalidRequest, "The parameter tool must be SERVER/TOOL or SERVER/TOOL@DIGEST.")
		}
		t := h.check(seen, whole, schema.ServerID(server), name, digest, x.Principal)
		answer.Ready = answer.Ready && t.Ready
		answer.Tools = append(answer.Tools, t)
	}
	return answer, nil
}

// splitDigest splits TOOL@DIGEST. Names of tools may contain "@", too.
func splitDigest(text string) (name, digest string) {
	if at := strings.LastIndex(text, "@sha256:"); at >= 0 {
		return text[:at], text[at+1:]
	}
	return text, ""
}

// check reports whether calls of a tool can run. digest is the required digest, or "" for any. whole
// is the catalog that the tenant sees, which includes tools that are hidden because the policy
// denies them.
func (h *searchHandlers) check(seen, whole *catalog.Seen, server schema.ServerID, name, digest string, who schema.Principal) PreflightTool {
	p := PreflightTool{Server: server, Tool: name, State: "ready"}
	not := func(state, reason string) PreflightTool {
		p.State, p.Reason = state, reason
		return p
	}
	t, err := seen.Tool(server, name)
	if schema.KindOf(err) == schema.KindNotFound && who.MayCall(server, name) == nil {
		t, err = whole.Tool(server, name)
	}
	switch {
	case schema.KindOf(err) == schema.KindNotFound:
		return not("missing", schema.AsError(err).Detail)
	case err != nil:
		return not("unknown", schema.AsError(err).Detail)
	}
	a := h.calls.Preview(&t, who)
	p.Digest = t.Digest
	p.Pinned = h.pinned(&t)
	p.Risk, p.Decision = decisionOf(&a)
	switch refusal := t.Refusal(); {
	case !t.Switch.Enabled:
		return not("disabled", schema.AsError(refusal).Detail)
	case t.Quarantined():
		return not("unaccepted", schema.AsError(refusal).Detail)
	case digest != "" && digest != t.Digest:
		return not("changed", "The definition is "+t.Digest+".")
	case refusal != nil:
		return not("offline", schema.AsError(refusal).Detail)
	case a.Deny:
		return not("denied", risk.JoinReasons(a.Reasons))
	}
	p.Ready = true
	return p
}

func (h *searchHandlers) pinned(t *catalog.Tool) bool {
	s, err := h.catalog.Server(t.Server)
	return err == nil && s.PinMode != "" && t.Change == nil
}

func opPreflight() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/preflight", "preflight", openapi.TagServers, "Check that tools are ready",
		"Checks whether the tools that a program needs exist and are enabled, accepted, online and not denied to you by the policy. The policy is evaluated for a call without arguments. No tool runs.")
	tools := openapi.QueryParam("tool", "A tool as SERVER/TOOL, or as SERVER/TOOL@DIGEST to require the definition with this digest. Repeat the parameter for several tools.",
		&huma.Schema{Type: huma.TypeArray, Items: openapi.String(), MinItems: new(1), MaxItems: new(maxPreflight)})
	tools.Required, tools.Example = true, []any{"everything/echo"}
	op.Parameters = []*huma.Param{tools}
	return op
}
