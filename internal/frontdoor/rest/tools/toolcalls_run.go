package tools

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// run runs all calls, some of them concurrently, and returns when all have ended.
func (b *block) run() {
	var wait sync.WaitGroup
	places := make(chan struct{}, maxConcurrentCalls)
	for i := range b.answers {
		places <- struct{}{}
		wait.Go(func() {
			defer func() { <-places }()
			b.guarded(i)
			if b.ended != nil {
				b.ended(i)
			}
		})
	}
	wait.Wait()
}

// guarded runs one call and recovers from a panic. It runs in its own goroutine, where a panic would
// end the process.
func (b *block) guarded(i int) {
	defer func() {
		if v := recover(); v != nil {
			b.handlers.log.Error("a tool call panicked", "panic", v, "stack", string(debug.Stack()))
			b.failed(i, schema.Errorf(schema.KindInternal, "The front door failed on this call; its log has the cause.").WithCall(b.items[i].CallID))
		}
	}()
	b.one(i)
}

// one runs one call and records its outcome.
func (b *block) one(i int) {
	answer, item := &b.answers[i], &b.items[i]
	if answer.Call.Err != nil {
		b.failed(i, answer.Call.Err)
		return
	}
	tool, _, _, err := b.names.find(answer.Call.Name)
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
	case out.Result == nil:
		b.accepted(i, out.Accepted.CallID)
	default:
		item.State, answer.Result = "succeeded", out.Result.Body
		var of struct {
			IsError bool `json:"isError"`
		}
		item.ToolError = json.Unmarshal(answer.Result, &of) == nil && of.IsError
	}
}

// submit submits the call. If the policy or the caller wants it stored, it waits for its end.
func (b *block) submit(call *schema.Call, i int) (calls.Outcome, error) {
	c := b.handlers.calls
	req := calls.Request{Call: call, Durable: b.wish.Preferred(), Async: b.wish.AtOnce()}
	if b.wish.Key != "" {
		req.Key, req.Fingerprint = b.wish.Key+"#"+strconv.Itoa(b.items[i].Index), b.wish.Fingerprint
	}
	out, err := c.Submit(b.ctx, req)
	if err != nil || out.Accepted == nil || b.wish.AtOnce() {
		return out, err
	}
	ctx, most := b.ctx, submit.MaxWait
	wait, bounded := b.wish.Wait()
	if bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
		most = wait
	}
	id, who := out.Accepted.CallID, b.base.Principal
	var s *calls.Status
	if !out.Accepted.Replayed {
		s, err = c.Await(ctx, out.Accepted, who)
	} else {
		s, err = c.Wait(b.ctx, id, who, most)
	}
	switch {
	case bounded && b.ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return out, nil
	case err != nil:
		return out, schema.AsError(err).WithCall(id)
	case !s.State.Ended() && bounded:
		return out, nil
	case !s.State.Ended():
		return out, schema.Errorf(schema.KindConflict, "The call is still running; GET /calls/%s returns its state.", id).WithCall(id)
	}
	out.Result, err = c.Result(b.ctx, s)
	return out, err
}

// failed records the error of a call.
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

// held records a call that waits for an approval. The message for the model says to wait. The token
// is only for the caller.
func (b *block) held(i int, h *calls.Held) {
	item, answer := &b.items[i], &b.answers[i]
	c := b.handlers.runner.Confirmation(h)
	item.State, item.CallID, item.Confirmation, item.Location = "held", c.CallID, &c, "/calls/"+string(c.CallID)
	answer.Text = "This call has not run. It is held until a person approves it"
	if len(c.Reasons) > 0 {
		answer.Text += " (" + risk.JoinReasons(c.Reasons) + ")"
	}
	answer.Text += ". Do not send it again: it runs once it is approved, and GET /calls/" + string(c.CallID) + " returns its outcome."
}

// accepted records a call that is stored and continues without the caller.
func (b *block) accepted(i int, id schema.CallID) {
	item, answer := &b.items[i], &b.answers[i]
	item.State, item.CallID, item.Location = "accepted", id, "/calls/"+string(id)
	answer.Text = "This call was accepted and has not answered yet. Do not send it again: GET " + item.Location + " returns its outcome."
}

// send answers with the outcomes of the calls. The status is 202 if one of them continues.
func (b *block) send(x *httpapi.Exchange) {
	status := http.StatusOK
	for i := range b.items {
		if b.items[i].State == "accepted" {
			status = http.StatusAccepted
		}
	}
	if b.wish.Preferred() {
		x.Set("Preference-Applied", b.wish.Applied())
	}
	if status == http.StatusAccepted && len(b.items) == 1 {
		x.Set("Location", b.items[0].Location)
	}
	x.SendJSON(status, b.encode())
}

// encode encodes the answer. Messages are included verbatim.
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
	out := append([]byte(`{"format":`), httpapi.EncodeInline(b.format)...)
	out = append(append(out, `,"messages":`...), messages...)
	out = append(append(out, `,"calls":`...), httpapi.EncodeInline(b.items)...)
	if len(b.own) > 0 {
		out = append(append(out, `,"own_calls":`...), httpapi.EncodeInline(b.own)...)
	}
	return append(out, '}')
}
