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

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/pkg/schema"
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

// held answers a call that waits for an approval, in the best way that the client knows.
func (f *Face) held(ctx context.Context, x *exchange, call *schema.Call, h *calls.Held) ([]byte, *fault) {
	x.setCall(h.CallID)
	if x.tasks() {
		return f.newTask(ctx, x, taskID(h.CallID, h.Token))
	}
	question := f.question(x, h, h.Token, call.Arguments)
	switch {
	case question == nil:
		return f.heldResult(h, h.Token), nil
	case x.modern:
		return inputRequired(question, heldState{Call: h.CallID, Token: h.Token}), nil
	}
	m, err := x.session.ask(ctx, x, "elicitation/create", question)
	if err != nil {
		return x.toolFault(schema.AsError(err).WithCall(h.CallID))
	}
	result, done, e := f.decide(ctx, x, h, h.Token, m.result)
	if e != nil || done {
		return result, e
	}
	return f.heldResult(h, h.Token), nil
}

// question returns the params of the elicitation by which the client's user says
// yes, nil where the client cannot be asked that. token says that the caller may
// confirm by itself; else people decide on a page.
func (f *Face) question(x *exchange, h *calls.Held, token string, arguments []byte) []byte {
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
		b = appendMember(b, "message", quote(words(h, arguments, true)))
		b = appendMember(b, "requestedSchema", []byte(`{"type":"object","properties":{"confirm":{"type":"boolean","title":"Run this call","description":"true runs it once, false refuses it"}},"required":["confirm"]}`))
	case token == "" && byURL && f.o.ApproverURL != "":
		b = appendMember(b, "mode", []byte(`"url"`))
		if !x.modern {
			b = appendMember(b, "elicitationId", quote(h.ApprovalID))
		}
		b = appendMember(b, "url", quote(f.page(h)))
		b = appendMember(b, "message", quote(words(h, arguments, false)))
	default:
		return nil
	}
	return append(b, '}')
}

// page is where people decide.
func (f *Face) page(h *calls.Held) string {
	if f.o.ApproverURL == "" {
		return ""
	}
	return f.o.ApproverURL + "/a/" + url.PathEscape(h.ApprovalID)
}

func words(h *calls.Held, arguments []byte, own bool) string {
	text := fmt.Sprintf("The tool %q of server %q needs a yes before it runs", h.Tool, h.Server)
	if len(h.Reasons) > 0 {
		text += " (" + strings.Join(h.Reasons, "; ") + ")"
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
	s, err := f.o.Calls.Get(ctx, state.Call, x.principal)
	switch {
	case isGone(err):
		return nil, foreign
	case err != nil:
		return nil, x.faultOf(err)
	case s.Held == nil || !s.Same(call):
		return nil, foreign
	}
	x.setCall(s.ID)
	result, done, e := f.decide(ctx, x, s.Held, state.Token, get(responses, questionID))
	if e != nil || done {
		return result, e
	}
	if question := f.question(x, s.Held, state.Token, call.Arguments); question != nil {
		return inputRequired(question, state), nil
	}
	return f.heldResult(s.Held, state.Token), nil
}

// decide acts on what the client's user answered. done is false when that was
// neither a yes nor a no.
func (f *Face) decide(ctx context.Context, x *exchange, h *calls.Held, token string, answer []byte) (result []byte, done bool, e *fault) {
	action := getString(answer, "action")
	confirmed := string(get(get(answer, "content"), "confirm"))
	switch {
	case token == "" && action == "accept":
		return f.awaited(ctx, x, h)
	case token == "" && action == "decline":
		if _, err := f.o.Calls.Cancel(ctx, h.CallID, x.principal); err != nil {
			result, e = x.toolFault(err)
			return result, true, e
		}
		return errorResult("The call was taken back and will not run.", "callyard/error", nil), true, nil
	case token == "":
		return nil, false, nil
	case action == "accept" && confirmed == "true", action == "accept" && confirmed == "false", action == "decline":
		yes := action == "accept" && confirmed == "true"
		c, err := f.o.Calls.Confirm(ctx, calls.Confirmation{Token: token, Confirm: yes, Principal: x.principal, Attempt: schema.NewID("mcp")})
		switch {
		case err != nil && c.CallID != "": // it was confirmed, and this is its end
			result, e = x.toolFault(err)
		case err != nil:
			result, e = f.spent(ctx, x, h, err)
		case c.Denied:
			result = errorResult("The call was rejected and will not run.", "callyard/error", nil)
		default:
			result = x.fitted(c.Result.Body)
		}
		return result, true, e
	}
	return nil, false, nil
}

// spent answers a token that does not count any more: with the end of its call
// where that is known.
func (f *Face) spent(ctx context.Context, x *exchange, h *calls.Held, err error) ([]byte, *fault) {
	if schema.KindOf(err) == schema.KindNotFound {
		if s, findErr := f.o.Calls.Get(ctx, h.CallID, x.principal); findErr == nil && s.State.Ended() {
			return f.ended(ctx, x, s)
		}
		return errorResult(schema.AsError(err).Detail, "callyard/error", dataOf(schema.AsError(err))), nil
	}
	return x.toolFault(err)
}

// awaited waits until a held call has ended, and answers with its end; done is
// false when it has not ended in time.
func (f *Face) awaited(ctx context.Context, x *exchange, h *calls.Held) (result []byte, done bool, e *fault) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.leaving, cancel)()
	s, err := f.o.Calls.Wait(waiting, h.CallID, x.principal, holdFor)
	switch {
	case ctx.Err() != nil:
		return nil, true, x.faultOf(schema.Errorf(schema.KindCanceled, "The caller left; the call stays held."))
	case f.leaving.Err() != nil:
		return nil, false, nil // the client comes back, to another front door
	case err != nil:
		return nil, true, x.faultOf(err)
	case !s.State.Ended():
		return nil, false, nil
	}
	result, e = f.ended(ctx, x, s)
	return result, true, e
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
func (f *Face) heldResult(h *calls.Held, token string) []byte {
	c := confirmation{
		RequiresConfirmation: true, ConfirmationID: token, CallID: h.CallID, ApprovalID: h.ApprovalID, RiskLevel: h.Level, Reasons: h.Reasons,
		ServerID: h.Server, ToolName: h.Tool, ExpiresAt: h.Expires,
	}
	text := fmt.Sprintf("This call is held and has not run: the tool %q of server %q needs a yes first", h.Tool, h.Server)
	if len(h.Reasons) > 0 {
		text += " (" + strings.Join(h.Reasons, "; ") + ")"
	}
	until := h.Expires.UTC().Format(time.RFC3339)
	if token != "" {
		text += fmt.Sprintf(". Ask the user. To run it once, before %s: POST /confirmations/%s with {\"confirm\":true} at the REST API of Callyard; {\"confirm\":false} refuses it.", until, token)
	} else {
		c.ApprovalURL = f.page(h)
		text += ". Somebody else must approve it before " + until
		if c.ApprovalURL != "" {
			text += ": " + c.ApprovalURL
		}
		text += ". Do not send it again."
	}
	text += " GET /calls/" + h.CallID + "?wait=60 tells what came of it."
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
