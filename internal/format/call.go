package format

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/callyard/callyard/pkg/schema"
)

// Call is one tool call as a model wrote it.
type Call struct {
	// ID is the provider's id, which the answer must repeat. "" means none.
	ID string
	// Name is the tool name as the model wrote it; see [Directory.Candidates].
	Name string
	// Arguments holds the bytes that the model wrote, or {} if it wrote none.
	Arguments []byte
	// Err is the reason why the call cannot be run, independent of its tool. It is usually nil.
	Err *schema.Error
	// Source is the original block of the call in the message. It is nil for a call that was
	// found in plain text.
	Source []byte

	legacy bool // OpenAI's function_call, which is answered with another role
	rpc    bool // a JSON-RPC request; ID is the JSON text of its id
}

// MaxCalls limits the calls that are read from one message.
const MaxCalls = 128

// Detect returns the format of the tool calls in a message. The error is of KindInvalidRequest.
func Detect(raw []byte) (Format, error) {
	v, err := read(raw)
	if err != nil {
		return "", unreadable("The tool calls cannot be read: %w.", err)
	}
	for _, f := range []Format{Gemini, Anthropic, Responses, OpenAI, MCP} {
		if calls, err := f.calls(v); len(calls) > 0 || err != nil {
			return f, nil // [Format.Calls] reports the error
		}
	}
	return "", unreadable("The body has no tool calls in a known format. Send the assistant message or its tool calls as the provider returned them, or the plain text of a model as {\"text\":\"…\"}.")
}

// Calls returns the tool calls of a provider's message, in order. It accepts the complete response
// of the provider, its assistant message, the list of blocks, or one block. Blocks that are not
// tool calls (text, reasoning) are skipped. A call that cannot be parsed is in the list with its
// Err set. A conversation, in which calls have answers already, is refused, because its calls would
// run again. The error is of KindInvalidRequest, or of KindTooLarge for more than MaxCalls calls.
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
	switch {
	case len(r.calls) > 0 && hasAnswer(v):
		return nil, unreadable("The body is a conversation: it has answers to tool calls. Send only the last message of the model, because the other calls would run again.")
	case len(r.calls) > MaxCalls:
		return nil, errTooManyCalls(len(r.calls))
	}
	return r.calls, nil
}

// hasAnswer reports whether a message, or one of a list, answers a tool call in the format of a
// provider.
func hasAnswer(v *value) bool {
	if v.isList() {
		return slices.ContainsFunc(v.items, hasAnswer)
	}
	if !v.isObject() {
		return false
	}
	switch v.get("role").text() {
	case "tool", "function":
		return true
	}
	switch v.get("type").text() {
	case "tool_result", "function_call_output":
		return true
	}
	return v.get("functionResponse").isObject() || v.get("function_response").isObject() ||
		slices.ContainsFunc([]string{"content", "parts", "output"}, func(inside string) bool { return hasAnswer(v.get(inside)) })
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

// errTooManyCalls returns the error for too many tool calls, of KindTooLarge.
func errTooManyCalls(n int) *schema.Error {
	return schema.Errorf(schema.KindTooLarge, "There are %d tool calls, which exceeds the limit of %d. Send the others in a batch.", n, MaxCalls)
}

type callReader struct {
	calls []Call
	parts []callParts // for each call
}

// callParts holds the values that a call was read from.
type callParts struct{ block, id, name, arguments *value }

// each calls f for v if it is an object, or for each item if it is a list.
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

// unsupported adds a block in the position of a tool call that cannot be run, so that it is reported
// instead of skipped.
func (r *callReader) unsupported(p callParts, format string, args ...any) {
	r.add(Call{Err: unreadable(format, args...)}, p, "")
}

// source returns the original text of a value that was read, with the spelling of everything
// inside.
func (v *value) source() []byte {
	if v.whole != nil {
		return v.whole[v.start:v.end]
	}
	return v.encode(nil)
}

// written reads arguments that are JSON inside a string, as OpenAI sends them.
func (r *callReader) written(c Call, p callParts, where string) {
	if p.arguments.isString() { // some OpenAI-compatible providers send the object itself
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
			if len(choices.items) > 0 { // other choices are alternative answers
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

// openAICalls reads the member tool_calls. Every item counts as a call.
func (r *callReader) openAICalls(many *value) {
	items := []*value{many}
	if many.isList() {
		items = many.items
	}
	for _, item := range items {
		if !r.openAICall(item) {
			r.unsupported(callParts{block: item, id: item.get("id"), name: item.get("name")}, "The tool call cannot be read: it has no function.")
		}
	}
}

// openAICall reads one call and reports whether v is one.
func (r *callReader) openAICall(v *value) bool {
	if f := v.get("function"); f.isObject() {
		r.written(Call{}, callParts{v, v.get("id"), f.get("name"), f.get("arguments")}, "function.name")
		return true
	}
	if custom := v.get("custom"); custom.isObject() {
		r.unsupported(callParts{block: v, id: v.get("id"), name: custom.get("name")}, "The call is for a custom tool; only functions are supported.")
		return true
	}
	return false
}

// callerRuns lists the item types of Responses for calls that the caller must run (not OpenAI) and
// that are not functions.
var callerRuns = []string{"custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call"}

func (r *callReader) responses(v *value) {
	each(v, func(v *value) {
		if out := v.get("output"); out.isList() {
			r.responses(out)
			return
		}
		id := first(v, "call_id", "id")
		switch kind := v.get("type").text(); {
		case kind == "function_call":
			r.written(Call{}, callParts{v, id, v.get("name"), v.get("arguments")}, "name")
		case slices.Contains(callerRuns, kind):
			name := v.get("name")
			if name.text() == "" {
				name = v.get("type")
			}
			r.unsupported(callParts{block: v, id: id, name: name}, "The call is of type %s; only functions are supported.", kind)
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
			// OpenAI's function_call has arguments, as a string.
			if f := v.get(name); f.isObject() && f.get("arguments") == nil {
				r.add(Call{}, callParts{v, f.get("id"), f.get("name"), f.get("args")}, "functionCall.name")
				return
			}
		}
		if f := v.get("functionCall"); f != nil && f.kind != 'n' && !f.isObject() {
			r.unsupported(callParts{block: v}, "The tool call cannot be read: functionCall is not an object.")
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
