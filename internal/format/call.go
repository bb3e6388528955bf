package format

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/callyard/callyard/pkg/schema"
)

// Call is one tool call as a model wrote it.
type Call struct {
	// ID is the provider's, which its answer has to name; "" where there is none.
	ID string
	// Name is the tool as the model named it; see [Directory.Resolve].
	Name string
	// Arguments are the bytes that the model wrote; {} where it wrote none.
	Arguments []byte
	// Err says why the call cannot be run whatever its tool is; nil mostly.
	Err *schema.Error
	// Source is the block of the call as it stood in the message; nil for a call that was
	// found in a text.
	Source []byte

	legacy bool // OpenAI's function_call, whose answer has another role
	rpc    bool // a JSON-RPC request, whose id is ID as it was spelled
}

// MaxCalls is how many calls are read from one message.
const MaxCalls = 128

// Detect says whose tool calls the text holds. The error is of KindInvalidRequest.
func Detect(raw []byte) (Format, error) {
	v, err := read(raw)
	if err != nil {
		return "", unreadable("The tool calls cannot be read: %w.", err)
	}
	for _, f := range []Format{Gemini, Anthropic, Responses, OpenAI, MCP} {
		if calls, err := f.calls(v); len(calls) > 0 || err != nil {
			return f, nil // which has too many calls, [Format.Calls] says
		}
	}
	return "", unreadable("The body has no tool calls in a known format. Send the assistant message or its tool calls as the provider returned them, or the plain text of a model as {\"text\":\"…\"}.")
}

// Calls returns the tool calls of a provider's message, in order. It takes the whole
// answer of the provider, its assistant message, the list of blocks, or one block;
// what is no tool call (text, reasoning) is passed over. A call that cannot be
// understood is in the list with its Err. The error is of KindInvalidRequest.
func (f Format) Calls(raw []byte) ([]Call, error) {
	v, err := read(raw)
	if err != nil {
		return nil, unreadable("The tool calls cannot be read: %w.", err)
	}
	calls, err := f.calls(v)
	if err != nil {
		return nil, err
	}
	for i := range calls {
		calls[i].Arguments, calls[i].Source = bytes.Clone(calls[i].Arguments), bytes.Clone(calls[i].Source)
	}
	return calls, nil
}

func (f Format) calls(v *value) ([]Call, error) {
	r := f.readCalls(v)
	if len(r.calls) > MaxCalls {
		return nil, tooMany(len(r.calls))
	}
	return r.calls, nil
}

func (f Format) readCalls(v *value) (r callReader) {
	switch f {
	case OpenAI:
		r.openAI(v)
	case Responses:
		r.responses(v)
	case Anthropic:
		r.anthropic(v)
	case Gemini:
		r.gemini(v)
	case MCP:
		r.mcp(v)
	}
	return r
}

// tooMany is the error of more tool calls than are taken at once, of KindTooLarge.
func tooMany(n int) *schema.Error {
	return schema.Errorf(schema.KindTooLarge, "There are %d tool calls, which exceeds the limit of %d. Send the others in a batch.", n, MaxCalls)
}

type callReader struct {
	calls []Call
	parts []callParts // of each call
}

// callParts are the values that a call was read from.
type callParts struct{ block, id, name, arguments *value }

// each calls f for v, or for its items.
func each(v *value, f func(*value)) {
	if v.isList() {
		for _, item := range v.items {
			f(item)
		}
	} else if v.isObject() {
		f(v)
	}
}

func (r *callReader) add(c Call, p callParts, where string) {
	c.Name = p.name.text()
	if c.ID == "" {
		c.ID = p.id.text()
	}
	if c.Arguments == nil {
		c.Arguments = []byte("{}")
		if p.arguments != nil && p.arguments.kind != 'n' {
			c.Arguments = p.arguments.source()
		}
	}
	if c.Name == "" && c.Err == nil {
		c.Err = unreadable("The tool call has no name in %s.", where)
	}
	c.Source = p.block.source()
	r.calls, r.parts = append(r.calls, c), append(r.parts, p)
}

// odd adds a block that stands where tool calls stand and is none that can be run, so that
// it is reported and not passed over.
func (r *callReader) odd(p callParts, format string, args ...any) {
	r.add(Call{Err: unreadable(format, args...)}, p, "")
}

// source is the text of a value as it was read, with the spelling of all inside.
func (v *value) source() []byte {
	if v.whole != nil {
		return v.whole[v.start:v.end]
	}
	return v.encode(nil)
}

// written reads arguments that are JSON in a string, as OpenAI has them.
func (r *callReader) written(c Call, p callParts, where string) {
	if p.arguments.isString() { // some who speak OpenAI's form send the object
		c.Arguments = []byte(p.arguments.text())
		if len(bytes.TrimSpace(c.Arguments)) == 0 {
			c.Arguments = []byte("{}")
		}
		if p.name.text() != "" && !json.Valid(c.Arguments) {
			c.Err = schema.Errorf(schema.KindInvalidArguments, "The arguments are not JSON; write one JSON object.")
		}
	}
	r.add(c, p, where)
}

func (r *callReader) openAI(v *value) {
	each(v, func(v *value) {
		if choices := v.get("choices"); choices.isList() {
			if len(choices.items) > 0 { // the others are other answers to the same question
				r.openAI(choices.items[0].get("message"))
			}
			return
		}
		if m := v.get("message"); m.isObject() && v.get("tool_calls") == nil && v.get("function") == nil {
			r.openAI(m)
			return
		}
		if many := v.get("tool_calls"); many != nil && many.kind != 'n' {
			r.openAICalls(many)
			return
		}
		if one := v.get("function_call"); one.isObject() {
			r.written(Call{legacy: true}, callParts{block: one, name: one.get("name"), arguments: one.get("arguments")}, "function_call")
			return
		}
		r.openAICall(v)
	})
}

// openAICalls reads the member tool_calls: everything in it is a call, or is meant to be one.
func (r *callReader) openAICalls(many *value) {
	items := []*value{many}
	if many.isList() {
		items = many.items
	}
	for _, item := range items {
		if !r.openAICall(item) {
			r.odd(callParts{block: item, id: item.get("id"), name: item.get("name")}, "The tool call cannot be read: it has no function.")
		}
	}
}

// openAICall reads one call, and says whether it is one.
func (r *callReader) openAICall(v *value) bool {
	if f := v.get("function"); f.isObject() {
		r.written(Call{}, callParts{v, v.get("id"), f.get("name"), f.get("arguments")}, "function.name")
		return true
	}
	if custom := v.get("custom"); custom.isObject() {
		r.odd(callParts{block: v, id: v.get("id"), name: custom.get("name")}, "The call is for a custom tool; only functions are supported.")
		return true
	}
	return false
}

// callerRuns are the types of items of Responses that are calls for the caller and not for
// OpenAI itself, and no functions.
var callerRuns = []string{"custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call"}

func (r *callReader) responses(v *value) {
	each(v, func(v *value) {
		if out := v.get("output"); out.isList() {
			r.responses(out)
			return
		}
		id := v.get("call_id")
		if id == nil {
			id = v.get("id")
		}
		switch kind := v.get("type").text(); {
		case kind == "function_call":
			r.written(Call{}, callParts{v, id, v.get("name"), v.get("arguments")}, "name")
		case slices.Contains(callerRuns, kind):
			name := v.get("name")
			if name.text() == "" {
				name = v.get("type")
			}
			r.odd(callParts{block: v, id: id, name: name}, "The call is of type %s; only functions are supported.", kind)
		}
	})
}

func (r *callReader) anthropic(v *value) {
	each(v, func(v *value) {
		if content := v.get("content"); content.isList() {
			r.anthropic(content)
			return
		}
		if v.get("type").text() == "tool_use" {
			r.add(Call{}, callParts{v, v.get("id"), v.get("name"), v.get("input")}, "name")
		}
	})
}

func (r *callReader) gemini(v *value) {
	each(v, func(v *value) {
		if c := v.get("candidates"); c.isList() {
			if len(c.items) > 0 {
				r.gemini(c.items[0].get("content"))
			}
			return
		}
		for _, inside := range []string{"content", "parts", "functionCalls"} {
			if parts := v.get(inside); parts.isList() || inside == "content" && parts.isObject() {
				r.gemini(parts)
				return
			}
		}
		for _, name := range []string{"functionCall", "function_call"} {
			// OpenAI's function_call has arguments, and they are text.
			if f := v.get(name); f.isObject() && f.get("arguments") == nil {
				r.add(Call{}, callParts{v, f.get("id"), f.get("name"), f.get("args")}, "functionCall.name")
				return
			}
		}
		if f := v.get("functionCall"); f != nil && f.kind != 'n' && !f.isObject() {
			r.odd(callParts{block: v}, "The tool call cannot be read: functionCall is not an object.")
		}
	})
}

func (r *callReader) mcp(v *value) {
	each(v, func(v *value) {
		if v.get("method").text() == schema.MethodCallTool {
			c, id := Call{rpc: true}, v.get("id")
			if id != nil {
				c.ID = string(id.encode(nil))
			}
			params := v.get("params")
			r.add(c, callParts{v, id, params.get("name"), params.get("arguments")}, "params.name")
			return
		}
		if v.get("method") == nil && v.get("name").isString() && v.get("type") == nil {
			r.add(Call{}, callParts{v, v.get("id"), v.get("name"), v.get("arguments")}, "name")
		}
	})
}
