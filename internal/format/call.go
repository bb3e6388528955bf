package format

import (
	"bytes"
	"encoding/json"

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
		calls[i].Arguments = bytes.Clone(calls[i].Arguments)
	}
	return calls, nil
}

func (f Format) calls(v *value) ([]Call, error) {
	r := callReader{}
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
	if len(r.calls) > MaxCalls {
		return nil, tooMany(len(r.calls))
	}
	return r.calls, nil
}

// tooMany is the error of more tool calls than are taken at once, of KindTooLarge.
func tooMany(n int) *schema.Error {
	return schema.Errorf(schema.KindTooLarge, "There are %d tool calls, which exceeds the limit of %d. Send the others in a batch.", n, MaxCalls)
}

type callReader struct{ calls []Call }

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

func (r *callReader) add(c Call, name, arguments *value, where string) {
	c.Name = name.text()
	switch {
	case c.Name == "":
		c.Err = unreadable("The tool call has no name in %s.", where)
	case arguments == nil || arguments.kind == 'n':
		c.Arguments = []byte("{}")
	default:
		c.Arguments = arguments.source()
	}
	r.calls = append(r.calls, c)
}

// source is the text of a value as it was read, with the spelling of all inside.
func (v *value) source() []byte {
	if v.whole != nil {
		return v.whole[v.start:v.end]
	}
	return v.encode(nil)
}

// written reads arguments that are JSON in a string, as OpenAI has them.
func (r *callReader) written(c Call, name, arguments *value, where string) {
	if !arguments.isString() {
		r.add(c, name, arguments, where) // some who speak OpenAI's form send the object
		return
	}
	inner := []byte(arguments.text())
	if len(bytes.TrimSpace(inner)) == 0 {
		inner = []byte("{}")
	}
	r.add(c, name, nil, where)
	last := &r.calls[len(r.calls)-1]
	last.Arguments = inner
	if last.Err == nil && !json.Valid(inner) {
		last.Err = schema.Errorf(schema.KindInvalidArguments, "The arguments are not JSON; write one JSON object.")
	}
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
		if many := v.get("tool_calls"); many.isList() {
			each(many, r.openAICall)
			return
		}
		if one := v.get("function_call"); one.isObject() {
			r.written(Call{legacy: true}, one.get("name"), one.get("arguments"), "function_call")
			return
		}
		r.openAICall(v)
	})
}

func (r *callReader) openAICall(v *value) {
	c := Call{ID: v.get("id").text()}
	if f := v.get("function"); f.isObject() {
		r.written(c, f.get("name"), f.get("arguments"), "function.name")
	} else if v.get("custom").isObject() {
		c.Err = unreadable("The call is for a custom tool; only functions are supported.")
		c.Name = v.get("custom").get("name").text()
		r.calls = append(r.calls, c)
	}
}

func (r *callReader) responses(v *value) {
	each(v, func(v *value) {
		if out := v.get("output"); out.isList() {
			r.responses(out)
			return
		}
		if v.get("type").text() == "function_call" {
			id := v.get("call_id")
			if id == nil {
				id = v.get("id")
			}
			r.written(Call{ID: id.text()}, v.get("name"), v.get("arguments"), "name")
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
			r.add(Call{ID: v.get("id").text()}, v.get("name"), v.get("input"), "name")
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
				r.add(Call{ID: f.get("id").text()}, f.get("name"), f.get("args"), "functionCall.name")
				return
			}
		}
	})
}

func (r *callReader) mcp(v *value) {
	each(v, func(v *value) {
		if v.get("method").text() == schema.MethodCallTool {
			c := Call{rpc: true}
			if id := v.get("id"); id != nil {
				c.ID = string(id.encode(nil))
			}
			params := v.get("params")
			r.add(c, params.get("name"), params.get("arguments"), "params.name")
			return
		}
		if v.get("method") == nil && v.get("name").isString() && v.get("type") == nil {
			r.add(Call{ID: v.get("id").text()}, v.get("name"), v.get("arguments"), "name")
		}
	})
}
