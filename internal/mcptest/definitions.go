package mcptest

import (
	"encoding/json"

	"github.com/callyard/callyard/internal/kit/mcpwire"
)

const (
	readOnly = `"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`

	changedEcho = `{"name":"echo","description":"Answers the text, for a reason","inputSchema":{"type":"object","properties":{"text":{"type":"string"},"reason":{"type":"string"}},"required":["text","reason"]},` + readOnly + `}`

	askResult = `{"resultType":"input_required","inputRequests":{"name":{"method":"` + mcpwire.MethodElicit + `","params":{"mode":"form","message":"Who asks?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}},"requestState":"opaque-state"}`
)

// OddTool is the definition of the tool "odd" in mode [UnknownContent], exactly as listed: with
// fields that no revision defines, an unusual key order, and numbers that do not survive a float64.
const OddTool = `{"x-future":{"z":1.0,"a":9007199254740993},"inputSchema":{"properties":{"n":{"default":9007199254740993,"type":"integer"}},"type":"object","x-order":["z","a"]},"annotations":{"readOnlyHint":true,"futureHint":"kept"},"name":"odd","_meta":{"example.org/b":2,"example.org/a":1}}`

// unknownContent is a result that must be passed on unchanged.
const unknownContent = `{"structuredContent":{"z":9007199254740993,"a":1.0,"e":1E2,"m":{"y":null,"b":[]}},"content":[{"type":"hologram","data":"AAEC","depth":3},{"text":"<last> \u00e9 \/ é","type":"text","annotations":{"zeta":1.0,"alpha":[]}}],"_meta":{"example.org/unknown":{"keep":true},"b":2,"a":1},"futureField":"kept","isError":false}`

// UnknownContentResult returns the bytes of the result object with which mode [UnknownContent]
// answers each call, in the modern or the legacy era.
func UnknownContentResult(modern bool) []byte { return []byte(stamp(unknownContent, modern)) }

// ToolDefinitions returns the exact bytes of the tool definitions that every mode lists, in order.
func ToolDefinitions() []json.RawMessage {
	var defs []json.RawMessage
	for _, def := range definitions() {
		defs = append(defs, json.RawMessage(def))
	}
	return defs
}

func definitions() []string {
	return []string{
		`{"name":"echo","description":"Answers the text","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]},` + readOnly + `}`,
		`{"name":"add","description":"Adds two numbers","inputSchema":{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]},"outputSchema":{"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"]},` + readOnly + `}`,
		`{"name":"sleep","description":"Answers after some milliseconds","inputSchema":{"type":"object","properties":{"ms":{"type":"integer","minimum":0}},"required":["ms"]},` + readOnly + `}`,
		`{"name":"big","description":"Answers with that many bytes of text","inputSchema":{"type":"object","properties":{"bytes":{"type":"integer","minimum":0}},"required":["bytes"]},` + readOnly + `}`,
		`{"name":"fail","description":"Answers that it failed","inputSchema":{"type":"object"}}`,
		`{"name":"refuse","description":"Answers with a JSON-RPC error","inputSchema":{"type":"object"}}`,
		`{"name":"crash","description":"Ends the server in the middle of the call","inputSchema":{"type":"object"}}`,
		`{"name":"env","description":"Answers with the environment of the server","inputSchema":{"type":"object"},` + readOnly + `}`,
		`{"name":"effect","description":"Appends the id to the file and syncs it","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"id":{"type":"string"},"ms":{"type":"integer","minimum":0},"after":{"type":"string"}},"required":["path","id"]},"annotations":{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":false}}`,
		`{"name":"ask","description":"Asks the caller for input","inputSchema":{"type":"object"}}`,
	}
}
