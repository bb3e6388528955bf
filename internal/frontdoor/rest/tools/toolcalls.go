package tools

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"

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
	// sideBySide is how many calls of one message run at once.
	sideBySide = 16
	// envelopeDepth is how deep providers nest a call's arguments.
	envelopeDepth = 16
)

// ToolCallsAnswer is the answer to POST /tool-calls.
type ToolCallsAnswer struct {
	Format   string              `json:"format" enum:"mcp,openai,openai-responses,anthropic,gemini" doc:"The provider of the tool calls."`
	Messages []openapi.AnyObject `json:"messages" nullable:"false" doc:"The provider's messages that answer the calls, in order. Append them to the message with the calls."`
	Calls    []ToolCallItem      `json:"calls" nullable:"false" doc:"The outcome of each call, in order."`
}

// ToolCallItem is what came of one tool call.
type ToolCallItem struct {
	Index        int                         `json:"index"`
	ID           string                      `json:"id,omitempty" doc:"The provider's id of the call." example:"call_abc123"`
	Name         string                      `json:"name" doc:"The name of the tool in the model's call." example:"everything__echo"`
	Server       string                      `json:"server,omitempty" example:"everything"`
	Tool         string                      `json:"tool,omitempty" example:"echo"`
	CallID       string                      `json:"call_id,omitempty" doc:"The id of the call, if it was admitted." example:"call_06b2t8m3c0w3v2q5n7k9a1d4fz"`
	State        string                      `json:"state" enum:"succeeded,failed,held,unknown" doc:"failed: it was refused or failed, for the reason in problem. held: it waits for approval. unknown: it was sent and no answer arrived."`
	ToolError    bool                        `json:"tool_error,omitempty" doc:"Whether the tool's result is an error."`
	Arguments    openapi.AnyObject           `json:"arguments,omitzero" doc:"The parsed arguments, for calls that were extracted from a text."`
	Repaired     bool                        `json:"repaired,omitempty" doc:"Whether the text of the call was invalid JSON and was repaired."`
	Confirmation *submit.ConfirmationRequest `json:"confirmation,omitempty" doc:"For a held call, the 202 answer of POST /calls."`
	Problem      *problem.Document           `json:"problem,omitempty"`
	Notes        []string                    `json:"notes,omitempty" nullable:"false" doc:"The parts of the result that the provider does not accept."`
}

// toolCallHandlers run the tool calls of a model.
type toolCallHandlers struct {
	runner   *submit.Runner
	calls    *calls.Calls
	catalog  *catalog.Catalog
	problems *httpapi.Problems
	limits   calls.Limits
}

func (h *toolCallHandlers) register(d *httpapi.Document) {
	d.AtLast(func(all map[string]*huma.Schema) { openapi.RefuseMore(all, "ConversionRequest") })
	d.Handle(h.opToolCalls(d), h.toolCalls)
	httpapi.HandleValue(d, opConvert(d), "The converted tools and calls, with the differences.", map[string]any{
		"from": "openai", "to": "anthropic",
		"tools": []any{map[string]any{"name": "echo", "input_schema": map[string]any{"type": "object", "properties": map[string]any{"message": map[string]any{"type": "string"}}}}},
		"notes": []any{map[string]any{"kind": "dropped", "pointer": "/tools/0/function/strict", "message": "The tool is not in strict mode here."}},
	}, h.convert)
}

// toolCallsMost is the most that a body of tool calls may take: arguments are
// escaped in it, and there are several.
func toolCallsMost(limits calls.Limits) int { return max(8*limits.ArgumentBytes, 1<<20) }

// toolCalls is POST /tool-calls.
func (h *toolCallHandlers) toolCalls(x *httpapi.Exchange, r *http.Request) error {
	base := &schema.Call{Principal: x.Principal}
	base.Trace = x.Trace(r)
	submit.ReadFreshness(r, base)
	var err error
	if base.Timeout, err = x.Timeout(r, h.limits.MaxTimeout); err != nil {
		return err
	}
	body, err := x.ReadBody(r, toolCallsMost(h.limits))
	if err != nil {
		return err
	}
	if err := validate.Value(body, toolCallsMost(h.limits), h.limits.ArgumentDepth+envelopeDepth); err != nil {
		return err
	}
	key, err := httpapi.IdempotencyKey(r)
	if err != nil {
		return err
	}
	if key != "" && !h.calls.CanStore() {
		return schema.Errorf(schema.KindUnavailable, "Durable calls are not available here; send the calls without Idempotency-Key.")
	}
	b := &block{handlers: h, ctx: x.Span.Carry(r.Context()), base: base, key: key, set: x.Query.Get("set")}
	if key != "" {
		b.print = httpapi.Fingerprint(r, body)
	}
	if b.set != "" {
		if _, err := h.catalog.Sets().Get(b.set); err != nil {
			return err
		}
	}
	if err := b.read(body, x.Query.Get("format")); err != nil {
		return err
	}
	b.run()
	x.SendJSON(http.StatusOK, b.encode())
	return nil
}

// block is the tool calls of one request on their way.
type block struct {
	handlers *toolCallHandlers
	ctx      context.Context // of the request; it bounds every call
	base     *schema.Call    // what all calls share
	key      string          // the Idempotency-Key, "" for none
	print    string
	set      string // whose tools and names are meant, "" for those of all servers

	format  format.Format
	plain   bool // they were found in a text
	answers []format.Answer
	items   []ToolCallItem
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
		if len(all) > format.MaxCalls { // the total has not been counted
			return schema.Errorf(schema.KindTooLarge, "The text has more than %d tool calls, which is the limit. Send the others in a batch.", format.MaxCalls)
		}
		for _, found := range all {
			b.answers = append(b.answers, format.Answer{Call: found.Call})
			item := ToolCallItem{ID: found.ID, Name: httpapi.Printable(found.Name, 256), Repaired: found.Repaired}
			if found.Err == nil {
				item.Arguments = openapi.AnyObject{RawMessage: found.Arguments}
			}
			b.items = append(b.items, item)
		}
	} else {
		calls, err := b.format.Calls(body)
		if err != nil {
			return err
		}
		for _, c := range calls {
			b.answers = append(b.answers, format.Answer{Call: c})
			item := ToolCallItem{ID: c.ID, Name: c.Name}
			if b.format == format.MCP { // the id of JSON-RPC, as it was spelled
				_ = json.Unmarshal([]byte(c.ID), &item.ID) // one that is no text stays
			}
			b.items = append(b.items, item)
		}
	}
	for i := range b.items {
		b.items[i].Index = i
	}
	return nil
}

// plainText returns the text of a body {"text": "…"}.
func plainText(body []byte) (string, bool) {
	var members map[string]json.RawMessage
	var text string
	if json.Unmarshal(body, &members) != nil || len(members) != 1 || json.Unmarshal(members["text"], &text) != nil {
		return "", false
	}
	return text, true
}

// lookup finds the input schema of the tool that a text names.
func (b *block) lookup(name string) ([]byte, bool) {
	t, err := b.find(name)
	if err != nil {
		return nil, false
	}
	return t.Input, true
}

// find returns the tool that a model means by the name: one of the set, where the request
// names a set.
func (b *block) find(name string) (catalog.Tool, error) {
	if b.set != "" {
		return b.handlers.catalog.Sets().Tool(b.set, name)
	}
	return Find(b.handlers.catalog, name)
}

// Find returns the tool that a model means by the name.
func Find(c *catalog.Catalog, name string) (catalog.Tool, error) {
	directory := format.Directory{
		Servers: func() []string {
			servers := c.Servers()
			ids := make([]string, len(servers))
			for i := range servers {
				ids[i] = servers[i].ID
			}
			return ids
		},
		Tools: func(server string) []string {
			tools, err := c.Tools(server)
			if err != nil {
				return nil
			}
			names := make([]string, len(tools))
			for i := range tools {
				names[i] = tools[i].Name
			}
			return names
		},
		Has: func(server, tool string) bool {
			_, err := c.Tool(server, tool)
			return err == nil
		},
	}
	ref, err := directory.Resolve(name)
	if err == nil {
		return c.Tool(ref.Server, ref.Tool)
	}
	// A server that is not ready is said to be that, and not to have no such tool.
	if server, tool, ok := strings.Cut(name, "__"); ok {
		if _, why := c.Tool(server, tool); schema.KindOf(why) == schema.KindUnavailable {
			return catalog.Tool{}, why
		}
	}
	return catalog.Tool{}, err
}

// run runs all calls, some of them side by side, and returns when all have ended.
func (b *block) run() {
	var wait sync.WaitGroup
	places := make(chan struct{}, sideBySide)
	for i := range b.answers {
		places <- struct{}{}
		wait.Go(func() {
			b.one(i)
			<-places
		})
	}
	wait.Wait()
}

// one runs one call and notes what came of it.
func (b *block) one(i int) {
	answer, item := &b.answers[i], &b.items[i]
	if answer.Call.Err != nil {
		b.failed(i, answer.Call.Err)
		return
	}
	tool, err := b.find(answer.Call.Name)
	if err != nil {
		b.failed(i, err)
		return
	}
	call := *b.base
	call.ID, call.Server, call.Tool = schema.NewCallID(), tool.Server, tool.Name
	call.Arguments = b.format.Restore(tool.Input, answer.Call.Arguments)
	item.Server, item.Tool, item.CallID = call.Server, call.Tool, call.ID
	out, err := b.submit(&call, i)
	item.CallID = call.ID
	switch {
	case err != nil:
		if id := schema.AsError(err).CallID; id != "" {
			item.CallID = id
		}
		b.failed(i, err)
	case out.Held != nil:
		b.held(i, out.Held)
	default:
		item.State, answer.Result = "succeeded", out.Result.Body
		var of struct {
			IsError bool `json:"isError"`
		}
		item.ToolError = json.Unmarshal(answer.Result, &of) == nil && of.IsError
	}
}

// submit submits the call, like every other, and waits for its end where the policy or
// the caller wants it stored.
func (b *block) submit(call *schema.Call, i int) (calls.Outcome, error) {
	c := b.handlers.calls
	req := calls.Request{Call: call}
	if b.key != "" {
		req.Key, req.Fingerprint = b.key+"#"+strconv.Itoa(i), b.print
	}
	out, err := c.Submit(b.ctx, req)
	if err != nil || out.Accepted == nil {
		return out, err
	}
	id, who := out.Accepted.CallID, b.base.Principal
	var s *calls.Status
	if !out.Accepted.Replayed {
		s, err = c.Await(b.ctx, out.Accepted, who)
	} else if s, err = c.Get(b.ctx, id, who); err == nil && (s.State != schema.StateHeld || s.Held == nil) {
		s, err = c.Wait(b.ctx, id, who, submit.MaxWait)
	}
	switch {
	case err != nil:
		return out, schema.AsError(err).WithCall(id)
	case s.State == schema.StateHeld && s.Held != nil:
		return calls.Outcome{Held: s.Held}, nil
	case !s.State.Ended():
		return out, schema.Errorf(schema.KindConflict, "The call is still running; GET /calls/%s returns its state.", id).WithCall(id)
	}
	out.Result, err = c.Result(b.ctx, s)
	return out, err
}

// failed notes a call that has no result.
func (b *block) failed(i int, err error) {
	e := schema.AsError(err)
	item, answer := &b.items[i], &b.answers[i]
	item.Problem = b.handlers.problems.Of(e)
	item.State = "failed"
	if e.Kind == schema.KindOutcomeUnknown {
		item.State = "unknown"
	}
	answer.Text, answer.Failed = format.ErrorText(e), true
}

// held notes a call that waits for an approval. The model is told to wait; the token is for
// its caller only.
func (b *block) held(i int, h *calls.Held) {
	item, answer := &b.items[i], &b.answers[i]
	c := b.handlers.runner.Confirmation(h)
	item.State, item.CallID, item.Confirmation = "held", c.CallID, &c
	answer.Text = "This call has not run. It is held until a person approves it"
	if len(c.Reasons) > 0 {
		answer.Text += " (" + strings.Join(c.Reasons, "; ") + ")"
	}
	answer.Text += ". Do not send it again: it runs once it is approved, and GET /calls/" + c.CallID + " returns its outcome."
}

// encode writes the answer. Messages stand in it as they were made.
func (b *block) encode() []byte {
	var messages []byte
	if b.plain {
		messages = b.format.PlainMessages(b.answers)
	} else {
		var notes [][]string
		messages, notes = b.format.Messages(b.answers)
		for i := range notes {
			b.items[i].Notes = notes[i]
		}
	}
	if b.items == nil {
		b.items = make([]ToolCallItem, 0)
	}
	out := append([]byte(`{"format":`), httpapi.Encode(b.format)...)
	out = append(append(out, `,"messages":`...), messages...)
	out = append(append(out, `,"calls":`...), httpapi.Encode(b.items)...)
	return append(out, '}')
}
