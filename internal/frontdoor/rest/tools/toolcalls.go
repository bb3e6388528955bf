package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// maxConcurrentCalls is the number of calls of one message that run concurrently.
	maxConcurrentCalls = 16
	// envelopeDepth is the nesting that providers add to a call's arguments.
	envelopeDepth = 16
)

// ToolCallsAnswer is the answer to POST /tool-calls.
type ToolCallsAnswer struct {
	Format   string              `json:"format" enum:"mcp,openai,openai-responses,anthropic,gemini" doc:"The provider of the tool calls."`
	Messages []openapi.AnyObject `json:"messages" nullable:"false" doc:"The provider's messages that answer the calls, in order. Append them to the message with the calls."`
	Calls    []ToolCallItem      `json:"calls" nullable:"false" doc:"The outcome of each call, in order."`
	OwnCalls []OwnToolCall       `json:"own_calls,omitempty" nullable:"false" doc:"The calls of tools that the parameter own names. They have not run: run them, and add their messages."`
}

// OwnToolCall is a call of a tool that the caller runs itself.
type OwnToolCall struct {
	Index     int               `json:"index" doc:"The position among all calls of the message."`
	ID        string            `json:"id,omitempty" doc:"The provider's id of the call." example:"call_abc124"`
	Name      string            `json:"name" doc:"The name of the tool, as in the parameter own." example:"ask_user"`
	Arguments openapi.AnyObject `json:"arguments,omitzero" doc:"The arguments; absent if they are not a JSON object."`
	Call      openapi.AnyObject `json:"call,omitzero" doc:"The call, exactly as it is in the message; absent for calls that were extracted from a text."`
}

// ToolCallItem is the outcome of one tool call.
type ToolCallItem struct {
	Index        int                         `json:"index" doc:"The position of the call in the message, from 0."`
	ID           string                      `json:"id,omitempty" doc:"The provider's id of the call." example:"call_abc123"`
	Name         string                      `json:"name" doc:"The name of the tool in the model's call." example:"everything__echo"`
	Server       schema.ServerID             `json:"server,omitempty" doc:"The server, if the name matched a tool." example:"everything"`
	Tool         string                      `json:"tool,omitempty" doc:"The name of the tool at its server, if the name matched one." example:"echo"`
	CallID       schema.CallID               `json:"call_id,omitempty" doc:"The id of the call, if it was admitted." example:"call_06b2t8m3c0w3v2q5n7k9a1d4fz"`
	State        string                      `json:"state" enum:"succeeded,failed,held,unknown,accepted" doc:"failed: it was refused or failed, for the reason in problem. held: it waits for approval. unknown: it was sent and no answer arrived. accepted: it is stored and continues, as Prefer requested; location has its path."`
	Location     string                      `json:"location,omitempty" doc:"For an accepted or held call, the path that returns its state." example:"/calls/call_06b2t8m3c0w3v2q5n7k9a1d4fz"`
	ToolError    bool                        `json:"tool_error,omitempty" doc:"Whether the tool's result is an error."`
	Arguments    openapi.AnyObject           `json:"arguments,omitzero" doc:"The parsed arguments, for calls that were extracted from a text."`
	Repaired     bool                        `json:"repaired,omitempty" doc:"Whether the text of the call was invalid JSON and was repaired."`
	Confirmation *submit.ConfirmationRequest `json:"confirmation,omitempty" doc:"For a held call, the 202 answer of POST /calls."`
	Problem      *problem.Document           `json:"problem,omitempty" doc:"The reason that it failed or is unknown."`
	Notes        []string                    `json:"notes,omitempty" nullable:"false" doc:"The parts of the result that the provider does not accept."`
}

// toolCallHandlers run the tool calls of a model.
type toolCallHandlers struct {
	runner   *submit.Runner
	calls    *calls.Calls
	catalog  *catalog.Catalog
	problems *httpapi.Problems
	limits   calls.Limits
	log      *slog.Logger
	// heartbeat is the interval at which a comment is sent on an idle stream of answers.
	heartbeat time.Duration
}

func (h *toolCallHandlers) register(d *httpapi.Document) {
	d.AtLast(func(all map[string]*huma.Schema) { openapi.ForbidUnknownMembers(all, "ConversionRequest") })
	d.Handle(h.opToolCalls(d), h.toolCalls)
	httpapi.HandleValue(d, opConvert(d), "The converted tools and calls, with the differences.", map[string]any{
		"from": "openai", "to": "anthropic",
		"tools": []any{map[string]any{"name": "echo", "input_schema": map[string]any{"type": "object", "properties": map[string]any{"message": map[string]any{"type": "string"}}}}},
		"notes": []any{map[string]any{"kind": "dropped", "pointer": "/tools/0/function/strict", "message": "The tool is not in strict mode here."}},
	}, h.convert)
}

// maxToolCallsBytes returns the maximum size of a body of tool calls: it contains several calls, with
// escaped arguments.
func maxToolCallsBytes(limits calls.Limits) int { return max(8*limits.ArgumentBytes, 1<<20) }

// toolCalls serves POST /tool-calls.
func (h *toolCallHandlers) toolCalls(x *httpapi.Exchange, r *http.Request) error {
	base := &schema.Call{Principal: x.Principal}
	base.Trace = x.Trace(r)
	submit.ReadFreshness(r, base)
	var err error
	if base.Timeout, err = x.Timeout(r, h.limits.MaxTimeout); err != nil {
		return err
	}
	body, err := x.ReadBody(r, maxToolCallsBytes(h.limits))
	if err != nil {
		return err
	}
	if err := validate.Value(body, maxToolCallsBytes(h.limits), h.limits.ArgumentDepth+envelopeDepth); err != nil {
		return err
	}
	b := &block{handlers: h, ctx: x.Span.Carry(r.Context()), base: base, names: names{
		catalog: x.Seen(h.catalog), whole: catalog.TenantsOf(h.catalog).Seen(x.Principal.Tenant), may: x.Principal.MayCall, set: x.Query.Get("set"),
	}}
	if b.wish, err = submit.ReadDurableOptions(r, body); err != nil {
		return err
	}
	if (b.wish.Key != "" || b.wish.Preferred()) && !h.calls.CanStore() {
		return schema.Errorf(schema.KindUnavailable, "Durable calls are not available here; send the calls without Idempotency-Key and Prefer.")
	}
	if b.names.own, err = ownNames(x.Query.Get("own")); err != nil {
		return err
	}
	if b.names.set != "" {
		if err := b.names.catalog.KnowsSet(b.names.set); err != nil {
			return err
		}
	}
	if err := b.read(body, x.Query.Get("format")); err != nil {
		return err
	}
	if !b.wish.Preferred() && submit.WantsEvents(r.Header["Accept"]) {
		return b.stream(x)
	}
	b.run()
	b.send(x)
	return nil
}

// maxOwnTools is the maximum number of the caller's own tools.
const maxOwnTools = 512

// ownNames parses the parameter own: comma-separated names.
func ownNames(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	all := strings.Split(list, ",")
	for i := range all {
		if all[i] = strings.TrimSpace(all[i]); all[i] == "" {
			return nil, schema.Errorf(schema.KindInvalidRequest, "Parameter own: a name is empty; separate names by one comma.")
		}
	}
	if len(all) > maxOwnTools {
		return nil, schema.Errorf(schema.KindInvalidRequest, "Parameter own: there are %d names, which exceeds the limit of %d.", len(all), maxOwnTools)
	}
	return all, nil
}

// block holds the tool calls of one request while they run.
type block struct {
	handlers *toolCallHandlers
	ctx      context.Context // of the request; it limits every call
	base     *schema.Call    // template of all calls
	wish     submit.DurableOptions
	names    names

	format  format.Format
	plain   bool // the calls were found in a text
	answers []format.Answer
	items   []ToolCallItem // one for each answer
	own     []OwnToolCall  // calls that the caller runs itself
	// ended is called once for each completed answer. It is nil if the answers are not streamed.
	ended func(i int)
}

// read finds the calls in the body.
func (b *block) read(body []byte, name string) (err error) {
	text, plain := plainText(body)
	switch {
	case name != "":
		if b.format, err = format.Parse(name); err != nil {
			return err
		}
	case plain:
		b.format = format.OpenAI
	default:
		if b.format, err = format.Detect(body); err != nil {
			return err
		}
	}
	if plain {
		b.plain = true
		all := format.Extract(text, b.lookup)
		if len(all) > format.MaxCalls { // the total was not counted
			return schema.Errorf(schema.KindTooLarge, "The text has more than %d tool calls, which is the limit. Send the others in a batch.", format.MaxCalls)
		}
		for i, found := range all {
			item := ToolCallItem{Index: i, ID: found.ID, Name: problem.Printable(found.Name, 256), Repaired: found.Repaired}
			if found.Err == nil {
				item.Arguments = openapi.AnyObject{RawMessage: found.Arguments}
			}
			b.add(found.Call, item)
		}
		return nil
	}
	calls, err := b.format.Calls(body)
	if err != nil {
		return err
	}
	for i, c := range calls {
		item := ToolCallItem{Index: i, ID: c.ID, Name: c.Name}
		if b.format == format.MCP { // the JSON-RPC ID, as it was written
			_ = json.Unmarshal([]byte(c.ID), &item.ID) // an ID that is not a string is kept
		}
		b.add(c, item)
	}
	return nil
}

// add adds a call to those that run here, or to those of the caller.
func (b *block) add(c format.Call, item ToolCallItem) {
	if len(b.names.own) > 0 {
		if _, own, _, err := b.names.find(c.Name); err == nil && own != "" {
			call := OwnToolCall{Index: item.Index, ID: item.ID, Name: own, Call: openapi.AnyObject{RawMessage: c.Source}}
			if c.Err == nil {
				call.Arguments.RawMessage = objectOf(c.Arguments)
			}
			b.own = append(b.own, call)
			return
		}
	}
	b.answers, b.items = append(b.answers, format.Answer{Call: c}), append(b.items, item)
}

// objectOf returns the text if it is a JSON object.
func objectOf(text []byte) []byte {
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		return trimmed
	}
	return nil
}

// plainText returns the text of a body {"text": "…"}. A body {"tool_call": {…}} is itself the text,
// from a model that was prompted to write calls in this form.
func plainText(body []byte) (string, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return "", false
	}
	if call := bytes.TrimSpace(members["tool_call"]); len(call) > 0 && call[0] == '{' {
		return string(body), true
	}
	var text string
	if len(members) != 1 || json.Unmarshal(members["text"], &text) != nil {
		return "", false
	}
	return text, true
}

// lookup returns the input schema of the tool named in a text. A name with several meanings counts
// as a tool, so that its call is reported.
func (b *block) lookup(name string) ([]byte, bool) {
	t, own, ambiguous, err := b.names.find(name)
	switch {
	case own != "" || ambiguous:
		return nil, true
	case err != nil:
		return nil, false
	}
	return t.Input, true
}
