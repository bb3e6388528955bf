package worker

import (
	"encoding/json"
	"sync"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/pkg/schema"
)

// metaOutputFaults is the member of a result's _meta that lists where its structuredContent does
// not match the tool's outputSchema.
const metaOutputFaults = "com.callyard/outputFaults"

// outputs holds the compiled output schemas of one version of a server's tools.
type outputs struct{ byTool sync.Map } // name → *validate.Schema, nil if the tool has none

// of returns the output schema of a tool, or nil if it has none that can be checked.
func (o *outputs) of(tool string, definition json.RawMessage) *validate.Schema {
	if known, ok := o.byTool.Load(tool); ok {
		return known.(*validate.Schema)
	}
	var s *validate.Schema
	if raw := rawjson.Get(definition, "outputSchema"); rawjson.IsObject(raw) {
		s, _ = validate.Compile(raw) // an invalid schema does not constrain results
	}
	o.byTool.Store(tool, s)
	return s
}

// checkOutput validates the structured content of a result against the tool's outputSchema (MCP
// specification, server/tools, structured content), as configured by "results" of the entry: a
// result that does not match is marked in its _meta, or refused. Results with isError are not
// checked.
func (h *held) checkOutput(tool string, out session.Outcome) session.Outcome {
	if h.served.Entry.Results == config.ResultsOff || out.Err != nil || out.ToolError || out.Input {
		return out
	}
	known := h.known() // load once: the schemas are kept with their version of the tools
	definition := known.tools[tool]
	if definition == nil {
		return out
	}
	s := known.outputs.of(tool, definition)
	if s == nil {
		return out
	}
	faults := []schema.Fault{{Message: "expected structuredContent, because the tool has an outputSchema"}}
	if content := rawjson.Get(out.Body, "structuredContent"); content != nil {
		if faults = s.Validate(content); len(faults) == 0 {
			return out
		}
	}
	if h.served.Entry.Results == config.ResultsRefuse {
		out.Err = schema.Errorf(schema.KindProtocol, "The tool %q of the server %q ran, but its result does not match its outputSchema.", tool, h.served.Session.Spec.ID)
		out.Err.Faults = faults
		out.Body = nil
		return out
	}
	listed, err := json.Marshal(faults)
	if err != nil { // pointers and messages always encode as JSON
		return out
	}
	meta := rawjson.Get(out.Body, "_meta")
	if !rawjson.IsObject(meta) {
		meta = []byte("{}")
	}
	out.Body, out.Alone = rawjson.With(out.Body, "_meta", rawjson.With(meta, metaOutputFaults, listed)), true
	return out
}
