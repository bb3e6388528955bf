package mcpface

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/admission"
	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/pkg/schema"
	"github.com/callyard/callyard/pkg/schema/digest"
)

const (
	// questionID names our question among those of a result.
	questionID = "approval"
	// statePrefix marks a requestState of ours; all others are a server's.
	statePrefix = "callyard:"
	// holdFor is how long a request waits for a person before the client is asked
	// again.
	holdFor = 10 * time.Minute
	// shownMost is how much of the arguments a question shows.
	shownMost = 2000
)

// heldState is what a client brings back to a held call: nothing that counts by
// itself. The call is looked up, and must be the same and the caller's own.
type heldState struct {
	Call  string `json:"call"`
	Token string `json:"token,omitempty"`
	// Round is that of a stored call whose server asked.
	Round int `json:"round,omitempty"`
	// Talk is a call that waits at the front door Door for what its server asked.
	Talk string `json:"talk,omitempty"`
	Door string `json:"door,omitempty"`
}

func (s heldState) String() string {
	raw, _ := json.Marshal(s) // strings only
	return statePrefix + base64.RawURLEncoding.EncodeToString(raw)
}

// readState returns a requestState of ours; ok is false for one of a server.
func readState(value []byte) (s heldState, ok bool) {
	text, isText := str(value)
	inner, ours := strings.CutPrefix(text, statePrefix)
	if !isText || !ours {
		return s, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(inner)
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return heldState{}, true // no call has this id
	}
	return s, true
}

// held answers a call that waits for a yes, in the best way that the client knows.
func (f *Face) held(ctx context.Context, x *exchange, call *schema.Call, h *admission.HeldError) ([]byte, *fault) {
	p := h.Approval
	x.setCall(p.CallID)
	if h.Run {
		return f.release(ctx, x, p)
	}
	if x.tasks() {
		return f.newTask(ctx, x, taskID(p.CallID, h.Token))
	}
	question := f.question(x, p, h.Token, call.Arguments)
	switch {
	case question == nil:
		return f.heldResult(p, h.Token), nil
	case x.modern:
		return inputRequired(question, heldState{Call: p.CallID, Token: h.Token}), nil
	}
	m, err := x.session.ask(ctx, x, "elicitation/create", question)
	if err != nil {
		return x.toolFault(schema.AsError(err).WithCall(p.CallID))
	}
	result, done, e := f.decide(ctx, x, p, h.Token, m.result)
	if e != nil || done {
		return result, e
	}
	return f.heldResult(p, h.Token), nil
}

// release runs a call that has its yes, and answers with its result.
func (f *Face) release(ctx context.Context, x *exchange, p *ledger.Approval) ([]byte, *fault) {
	res, err := f.o.Release(ctx, p)
	if err != nil {
		return x.toolFault(schema.AsError(err).WithCall(p.CallID))
	}
	return x.fitted(res.Body), nil
}

// question returns the params of the elicitation by which the client's user says
// yes, nil where the client cannot be asked that. token says that the caller may
// confirm by itself; else people decide on a page.
func (f *Face) question(x *exchange, p *ledger.Approval, token string, arguments []byte) []byte {
	capabilities := x.meta.capabilities
	if x.session != nil {
		capabilities = x.session.capabilities
	}
	asks := get(capabilities, "elicitation")
	if !isObject(asks) {
		return nil
	}
	byURL := capable(asks, "url")
	// Before there were two ways, an empty object meant forms.
	byForm := capable(asks, "form") || !byURL
	b := []byte{'{'}
	switch {
	case token != "" && byForm:
		if x.modern || x.session.version >= legacyNewest {
			b = appendMember(b, "mode", []byte(`"form"`))
		}
		b = appendMember(b, "message", quote(words(p, arguments, true)))
		b = appendMember(b, "requestedSchema", []byte(`{"type":"object","properties":{"confirm":{"type":"boolean","title":"Run this call","description":"true runs it once, false refuses it"}},"required":["confirm"]}`))
	case token == "" && byURL && f.o.ApproverURL != "":
		b = appendMember(b, "mode", []byte(`"url"`))
		if !x.modern {
			b = appendMember(b, "elicitationId", quote(p.ID))
		}
		b = appendMember(b, "url", quote(f.page(p)))
		b = appendMember(b, "message", quote(words(p, arguments, false)))
	default:
		return nil
	}
	return append(b, '}')
}

// page is where people decide.
func (f *Face) page(p *ledger.Approval) string {
	if f.o.ApproverURL == "" {
		return ""
	}
	return f.o.ApproverURL + "/a/" + url.PathEscape(p.ID)
}

func words(p *ledger.Approval, arguments []byte, own bool) string {
	b := p.Binding
	text := fmt.Sprintf("The tool %q of server %q needs a yes before it runs", b.Tool, b.Server)
	if len(p.Reasons) > 0 {
		text += " (" + strings.Join(p.Reasons, "; ") + ")"
	}
	if !own {
		text += ". Somebody else must approve it on this page; the call goes on when they did."
	}
	if n := len(arguments); n > 0 && n <= shownMost {
		text += " Arguments: " + string(arguments)
	} else if n > 0 {
		text += fmt.Sprintf(" Its arguments have %d bytes.", n)
	}
	return text
}

// inputRequired is a result that asks.
func inputRequired(question []byte, state heldState) []byte {
	b := []byte(`{"resultType":"input_required","inputRequests":{"` + questionID + `":{"method":"elicitation/create","params":`)
	b = append(append(b, question...), `}},"requestState":`...)
	return append(appendQuoted(b, state.String()), '}')
}

// resume goes on with a held call that the client comes back to.
func (f *Face) resume(ctx context.Context, x *exchange, call *schema.Call, state heldState, responses []byte) ([]byte, *fault) {
	if state.Talk != "" {
		return f.resumeTalk(ctx, x, call, state, responses)
	}
	if state.Round > 0 && f.stores() {
		return f.resumeStored(ctx, x, call, state, responses)
	}
	foreign := &fault{Code: codeInvalidParams, Message: "The requestState does not belong to this request."}
	p, err := f.approval(ctx, x.principal, state.Call)
	if err != nil {
		if schema.KindOf(err) == schema.KindNotFound {
			return nil, foreign
		}
		return nil, x.faultOf(err)
	}
	if b := p.Binding; b.Server != call.Server || b.Tool != call.Tool || b.ArgumentsDigest != digest.Of(call.Arguments) {
		return nil, foreign
	}
	x.setCall(p.CallID)
	result, done, e := f.decide(ctx, x, p, state.Token, get(responses, questionID))
	if e != nil || done {
		return result, e
	}
	if question := f.question(x, p, state.Token, call.Arguments); question != nil {
		return inputRequired(question, state), nil
	}
	return f.heldResult(p, state.Token), nil
}

// decide acts on what the client's user answered. done is false when that was
// neither a yes nor a no.
func (f *Face) decide(ctx context.Context, x *exchange, p *ledger.Approval, token string, answer []byte) (result []byte, done bool, e *fault) {
	action := getString(answer, "action")
	confirmed := string(get(get(answer, "content"), "confirm"))
	switch {
	case token == "" && action == "accept":
		return f.awaited(ctx, x, p)
	case token == "" && action == "decline":
		if _, err := f.o.Desk.Cancel(ctx, p.CallID, x.principal); err != nil {
			result, e = x.toolFault(err)
			return result, true, e
		}
		return errorResult("The call was taken back and will not run.", "callyard/error", nil), true, nil
	case token == "":
		return nil, false, nil
	case action == "accept" && confirmed == "true", action == "accept" && confirmed == "false", action == "decline":
		yes := action == "accept" && confirmed == "true"
		running, err := f.o.Desk.Confirm(ctx, token, yes, x.principal, schema.NewID("mcp"), f.o.RouterID)
		switch {
		case err != nil:
			result, e = f.spent(ctx, x, p, err)
		case !yes:
			result = errorResult("The call was rejected and will not run.", "callyard/error", nil)
		default:
			result, e = f.release(ctx, x, running)
		}
		return result, true, e
	}
	return nil, false, nil
}

// spent answers a token that does not count any more: with the end of its call
// where that is known.
func (f *Face) spent(ctx context.Context, x *exchange, p *ledger.Approval, err error) ([]byte, *fault) {
	if schema.KindOf(err) == schema.KindNotFound {
		if now, findErr := f.approval(ctx, x.principal, p.CallID); findErr == nil && now.State.Ended() {
			return f.approved(ctx, x, now)
		}
		return errorResult(schema.AsError(err).Detail, "callyard/error", dataOf(schema.AsError(err))), nil
	}
	return x.toolFault(err)
}

// approval returns the approval of a call of the principal's.
func (f *Face) approval(ctx context.Context, who schema.Principal, callID string) (*ledger.Approval, error) {
	none := schema.Errorf(schema.KindNotFound, "There is no such call.")
	if f.o.Ledger == nil || callID == "" || len(callID) > 256 {
		return nil, none
	}
	p, _, err := f.o.Ledger.ByCall(ctx, callID)
	if err == nil && p.Binding.Requester.Name != who.Name {
		return nil, none // nor is it said that there is one
	}
	return p, err
}

// awaited waits until a held call has ended, and answers with its end; done is
// false when it has not ended in time.
func (f *Face) awaited(ctx context.Context, x *exchange, p *ledger.Approval) (result []byte, done bool, e *fault) {
	changed := make(chan struct{}, 1)
	defer f.o.Ledger.WatchOne(p.ID, func(*ledger.Approval) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	over := time.NewTimer(holdFor)
	defer over.Stop()
	for {
		now, err := f.approval(ctx, x.principal, p.CallID)
		if err != nil {
			return nil, true, x.faultOf(err)
		}
		if now.State.Ended() {
			result, e = f.approved(ctx, x, now)
			return result, true, e
		}
		select {
		case <-changed:
		case <-over.C:
			return nil, false, nil
		case <-f.leaving:
			return nil, false, nil
		case <-ctx.Done():
			return nil, true, x.faultOf(schema.Errorf(schema.KindCanceled, "The caller left; the call stays held."))
		}
	}
}

// approved answers with the end of a held call.
func (f *Face) approved(ctx context.Context, x *exchange, p *ledger.Approval) ([]byte, *fault) {
	switch {
	case p.State == ledger.Succeeded:
		body, err := f.o.Ledger.Result(ctx, p.ID)
		if err != nil {
			return nil, x.faultOf(err)
		}
		return x.fitted(body), nil
	case p.Error != nil:
		return x.toolFault(p.Error.WithCall(p.CallID))
	case p.State == ledger.Expired:
		return x.toolFault(schema.Errorf(schema.KindExpired, "The call was not confirmed in time; it did not run.").WithCall(p.CallID))
	}
	return x.toolFault(schema.Errorf(schema.KindForbidden, "The call was %s; it did not run.", p.State).WithCall(p.CallID))
}

// confirmation is what programs read of a held call; the shape is that of REST.
type confirmation struct {
	RequiresConfirmation bool      `json:"requires_confirmation"`
	ConfirmationID       string    `json:"confirmation_id,omitempty"`
	CallID               string    `json:"call_id"`
	ApprovalID           string    `json:"approval_id"`
	ApprovalURL          string    `json:"approval_url,omitempty"`
	RiskLevel            int       `json:"risk_level"`
	Reasons              []string  `json:"reasons,omitempty"`
	ServerID             string    `json:"server_id"`
	ToolName             string    `json:"tool_name"`
	ExpiresAt            time.Time `json:"expires_at"`
}

// heldResult says what to do, to a client that cannot be asked.
func (f *Face) heldResult(p *ledger.Approval, token string) []byte {
	c := confirmation{
		RequiresConfirmation: true, ConfirmationID: token, CallID: p.CallID, ApprovalID: p.ID, RiskLevel: p.Bound().Level, Reasons: p.Reasons,
		ServerID: p.Binding.Server, ToolName: p.Binding.Tool, ExpiresAt: p.Expires,
	}
	text := fmt.Sprintf("This call is held and has not run: the tool %q of server %q needs a yes first", p.Binding.Tool, p.Binding.Server)
	if len(p.Reasons) > 0 {
		text += " (" + strings.Join(p.Reasons, "; ") + ")"
	}
	until := p.Expires.UTC().Format(time.RFC3339)
	if token != "" {
		text += fmt.Sprintf(". Ask the user. To run it once, before %s: POST /confirmations/%s with {\"confirm\":true} at the REST API of Callyard; {\"confirm\":false} refuses it.", until, token)
	} else {
		c.ApprovalURL = f.page(p)
		text += ". Somebody else must approve it before " + until
		if c.ApprovalURL != "" {
			text += ": " + c.ApprovalURL
		}
		text += ". Do not send it again."
	}
	text += " GET /calls/" + p.CallID + "?wait=60 tells what came of it."
	about, err := json.Marshal(c)
	if err != nil {
		about = nil // strings and numbers always marshal
	}
	return errorResult(text, "callyard/confirmation", about)
}

// isGone says that nothing is known of a call.
func isGone(err error) bool {
	var e *schema.Error
	return errors.As(err, &e) && e.Kind == schema.KindNotFound
}
