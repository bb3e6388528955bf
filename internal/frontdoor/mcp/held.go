package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/kit/visible"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// approvalRequestID is the ID of the approval request among the input requests of a result.
	approvalRequestID = "approval"
	// statePrefix marks a requestState of Callyard. All others belong to a server.
	statePrefix = "callyard:"
	// holdFor is the time that a request waits for a person before the client is asked again.
	holdFor = 10 * time.Minute
	// maxShownBytes limits the length of the arguments in a question.
	maxShownBytes = 2000
)

// requestState is the state that a client sends back to continue a waiting call. It grants
// nothing: the call is looked up, and must be the same call of the same caller.
type requestState struct {
	Call  schema.CallID `json:"call"`
	Token string        `json:"token,omitempty"`
	// Round is the round of a stored call whose server asked.
	Round int `json:"round,omitempty"`
	// Suspended is a call that waits at the front door Door for the input that its server requested.
	Suspended string `json:"talk,omitempty"`
	Door      string `json:"door,omitempty"`
	// Connect marks a call whose user was asked to connect to its server. The call did not start, so
	// the request with this state is an ordinary call.
	Connect bool `json:"connect,omitempty"`
	// Server is the state of a server that is a Callyard itself, and marks its states the same way.
	Server string `json:"server,omitempty"`
}

func (s requestState) String() string {
	raw, _ := json.Marshal(s) // strings only
	return statePrefix + base64.RawURLEncoding.EncodeToString(raw)
}

// wrapState returns a result that requests input so that the client's next request is not taken for
// one that continues a call of this Callyard.
func wrapState(result []byte) []byte {
	text := getString(result, "requestState")
	if !strings.HasPrefix(text, statePrefix) {
		return result
	}
	return withMember(result, "requestState", quote(requestState{Server: text}.String()))
}

// unwrapState decodes a requestState of Callyard. ok is false if it belongs to a server; theirs is
// then the value for that server.
func unwrapState(value []byte) (s requestState, theirs []byte, ok bool) {
	if s, ok = readState(value); s.Server != "" {
		return requestState{}, quote(s.Server), false
	}
	return s, value, ok
}

// readState decodes a requestState with the mark of Callyard. ok is false if it has none.
func readState(value []byte) (s requestState, ok bool) {
	text, isText := str(value)
	inner, ours := strings.CutPrefix(text, statePrefix)
	if !isText || !ours {
		return s, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(inner)
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return requestState{}, true // no call has this id
	}
	return s, true
}

// heldCalls answers calls that wait for an approval.
type heldCalls struct {
	calls       *calls.Calls
	approverURL string
	leaving     context.Context
	tasks       *tasks
}

// answer answers a call that waits for an approval, in the best way that the client supports.
func (hc *heldCalls) answer(ctx context.Context, x *exchange, call *schema.Call, h *calls.Held) ([]byte, *fault) {
	x.setCall(h.CallID)
	defer hc.withdrawCanceled(ctx, x, h)
	if x.tasks() {
		return hc.tasks.create(ctx, x, taskID(h.CallID, h.Token))
	}
	question := hc.question(x, h, h.Token, call.Arguments)
	switch {
	case question == nil:
		return hc.result(h, h.Token), nil
	case x.modern:
		return inputRequired(question, requestState{Call: h.CallID, Token: h.Token}), nil
	}
	m, end, err := hc.ask(ctx, x, h, question)
	switch {
	case err != nil:
		return x.toolFault(schema.AsError(err).WithCall(h.CallID))
	case end != nil:
		return hc.tasks.end(ctx, x, end)
	}
	result, done, e := hc.decide(ctx, x, h, h.Token, m.result)
	if e != nil || done {
		return result, e
	}
	return hc.undecided(ctx, x, call, requestState{Call: h.CallID, Token: h.Token}, m.result)
}

// ask asks the client of a session about a held call. end is the call if it ended before the
// client answered: it expired, or was decided elsewhere. The message is empty if the front door
// shuts down first: the call remains held, and another front door accepts the decision.
func (hc *heldCalls) ask(ctx context.Context, x *exchange, h *calls.Held, question []byte) (m message, end *calls.Status, err error) {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(hc.leaving, cancel)()
	var watch sync.WaitGroup
	watch.Go(func() {
		if end = hc.untilEnd(asking, x, h.CallID); end != nil {
			cancel()
		}
	})
	m, err = x.session.ask(asking, x, mcpwire.MethodElicit, question)
	answered := err == nil
	cancel()
	watch.Wait()
	switch {
	case answered:
		return m, nil, nil
	case end != nil, hc.leaving.Err() != nil && ctx.Err() == nil:
		return message{}, end, nil
	}
	return message{}, nil, err
}

// withdrawCanceled cancels a held call if the client of a session canceled its request or ended
// the session. The client cannot continue the call, so a later approval must not run it. Without a
// session, a request that ends is no cancellation: the client continues with the requestState.
func (hc *heldCalls) withdrawCanceled(ctx context.Context, x *exchange, h *calls.Held) {
	if x.session == nil || ctx.Err() == nil && !x.session.isOver() || hc.leaving.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedWithin)
	defer cancel()
	if _, err := hc.calls.Cancel(ctx, h.CallID, x.principal); err != nil && schema.KindOf(err) != schema.KindConflict {
		x.ep.log.Warn("a held call stays held after its client canceled it", "call", string(h.CallID), "error", err.Error())
	}
}

// untilEnd waits for the end of a held call. It returns nil if ctx ends first or the state cannot
// be read.
func (hc *heldCalls) untilEnd(ctx context.Context, x *exchange, id schema.CallID) *calls.Status {
	for {
		s, err := hc.calls.Wait(ctx, id, x.principal, holdFor)
		switch {
		case err == nil && s.State.Ended():
			return s
		case isGone(err), err != nil && !sleep.For(lookEvery, ctx.Done()), ctx.Err() != nil:
			return nil
		}
	}
}

// valid returns the token of a held call, or "" if an approver decides: the rule may have changed
// since the token was created.
func valid(token string, h *calls.Held) string {
	if h == nil || !h.ByCaller {
		return ""
	}
	return token
}

// question returns the params of the elicitation by which the client's user approves, or nil if
// the client does not support it. With a token, the caller may confirm the call; otherwise an
// approver decides on a page.
func (hc *heldCalls) question(x *exchange, h *calls.Held, token string, arguments []byte) []byte {
	asks := get(x.capabilities(), "elicitation")
	if !isObject(asks) || !x.modern && !x.res.streams { // in a session, the question is sent as an event
		return nil
	}
	byURL := capable(asks, "url")
	// Before there were two modes, an empty object meant forms.
	byForm := capable(asks, "form") || !byURL
	b := []byte{'{'}
	switch {
	case token != "" && byForm:
		if x.modern || x.session.version >= mcpwire.LegacyNewest {
			b = appendMember(b, "mode", []byte(`"form"`))
		}
		b = appendMember(b, "message", quote(words(h, arguments, true)))
		b = appendMember(b, "requestedSchema", []byte(`{"type":"object","properties":{"confirm":{"type":"boolean","title":"Run this call","description":"true runs it once, false rejects it"}},"required":["confirm"]}`))
	case token == "" && byURL && hc.approverURL != "":
		b = appendMember(b, "mode", []byte(`"url"`))
		if !x.modern {
			b = appendMember(b, "elicitationId", quote(string(h.ApprovalID)))
		}
		b = appendMember(b, "url", quote(hc.page(h)))
		b = appendMember(b, "message", quote(words(h, arguments, false)))
	default:
		return nil
	}
	return append(b, '}')
}

// page returns the URL of the page where approvers decide.
func (hc *heldCalls) page(h *calls.Held) string {
	if hc.approverURL == "" {
		return ""
	}
	return hc.approverURL + "/a/" + url.PathEscape(string(h.ApprovalID))
}

func words(h *calls.Held, arguments []byte, own bool) string {
	text := fmt.Sprintf("The tool %q of server %q requires approval before it runs", h.Tool, h.Server)
	if len(h.Reasons) > 0 {
		text += " (" + risk.JoinReasons(h.Reasons) + ")"
	}
	text += "."
	if !own {
		text += " Somebody else must approve it on this page; then the call continues."
	}
	if n := len(arguments); n > 0 && n <= maxShownBytes {
		// Escape the arguments: the client shows the message as text, and the model chose them.
		text += " Arguments: " + visible.Escaped(visible.Readable(arguments))
	} else if n > 0 {
		text += fmt.Sprintf(" Its arguments have %d bytes.", n)
	}
	return text
}

// inputRequired returns a result that requests input.
func inputRequired(question []byte, state requestState) []byte {
	b := []byte(`{"resultType":"input_required","inputRequests":{"` + approvalRequestID + `":{"method":"` + mcpwire.MethodElicit + `","params":`)
	b = append(append(b, question...), `}},"requestState":`...)
	return append(appendQuoted(b, state.String()), '}')
}

// resume continues a call whose client sends a requestState.
func (r *requests) resume(ctx context.Context, x *exchange, call *schema.Call, state requestState, responses []byte) ([]byte, *fault) {
	switch {
	case state.Suspended != "":
		return r.suspended.resume(ctx, x, call, state, responses)
	case state.Round > 0 && r.tasks.enabled():
		return r.tasks.resume(ctx, x, call, state, responses)
	}
	return r.held.resume(ctx, x, call, state, responses)
}

// stored returns the call of a requestState. It must belong to the caller and be the same call.
func stored(ctx context.Context, c *calls.Calls, x *exchange, call *schema.Call, state requestState) (*calls.Status, *fault) {
	s, err := c.Get(ctx, state.Call, x.principal)
	switch {
	case err != nil && !isGone(err):
		return nil, x.faultOf(err)
	case err != nil, !s.Same(call):
		return nil, foreignState()
	}
	return s, nil
}

func foreignState() *fault {
	return invalidParams("The requestState does not belong to this request.")
}

// resume continues a held call.
func (hc *heldCalls) resume(ctx context.Context, x *exchange, call *schema.Call, state requestState, responses []byte) ([]byte, *fault) {
	s, e := stored(ctx, hc.calls, x, call, state)
	if e == nil && s.Held == nil {
		e = foreignState()
	}
	if e != nil {
		return nil, e
	}
	x.setCall(s.ID)
	if s.State.Ended() {
		return hc.tasks.end(ctx, x, s)
	}
	answer := get(responses, approvalRequestID)
	result, done, e := hc.decide(ctx, x, s.Held, state.Token, answer)
	if e != nil || done {
		return result, e
	}
	return hc.undecided(ctx, x, call, state, answer)
}

// undecided answers a call that still waits after the client answered. It reads the call again:
// in the meantime another person may have to decide. A user who closed the question is not asked
// again, because clients retry at once.
func (hc *heldCalls) undecided(ctx context.Context, x *exchange, call *schema.Call, state requestState, answer []byte) ([]byte, *fault) {
	s, e := stored(ctx, hc.calls, x, call, state)
	switch {
	case e != nil:
		return nil, e
	case s.State.Ended():
		return hc.tasks.end(ctx, x, s)
	case s.Held == nil:
		return nil, foreignState()
	}
	state.Token = valid(state.Token, s.Held)
	if x.modern && getString(answer, "action") != "cancel" {
		if question := hc.question(x, s.Held, state.Token, call.Arguments); question != nil {
			return inputRequired(question, state), nil
		}
	}
	return hc.result(s.Held, state.Token), nil
}

// decide applies the answer of the client's user. done is false if the answer decides nothing: it
// was neither an approval nor a denial, or its approval is no longer sufficient.
func (hc *heldCalls) decide(ctx context.Context, x *exchange, h *calls.Held, token string, answer []byte) (result []byte, done bool, e *fault) {
	approved, rejected := confirmed(answer)
	given := token
	token = valid(given, h)
	switch {
	case token == "" && rejected:
		if _, err := hc.calls.Cancel(ctx, h.CallID, x.principal); err != nil {
			result, e = x.toolFault(err)
			return result, true, e
		}
		return errorResult("The call was withdrawn and will not run.", metaError, nil), true, nil
	case given == "" && getString(answer, "action") == "accept": // the user was sent to the page
		return hc.await(ctx, x, h)
	case token != "" && (approved || rejected):
		progress, stop := x.passProgress()
		defer stop()
		c, err := hc.calls.Confirm(ctx, calls.Confirmation{Token: token, Confirm: approved, Principal: x.principal, Attempt: schema.NewID("mcp"), Progress: progress})
		switch {
		case hc.changed(ctx, x, h, err):
			return nil, false, nil
		case err != nil && c.CallID != "": // it was confirmed, and this is its outcome
			result, e = x.toolFault(err)
		case err != nil:
			result, e = hc.answerSpentToken(ctx, x, h, err)
		case c.Denied:
			result = errorResult("The call was rejected and will not run.", metaError, nil)
		default:
			result = x.fitted(c.Result.Body)
		}
		return result, true, e
	}
	return nil, false, nil
}

// confirmed returns the decision in the answer to a form: an approval, a denial, or neither.
func confirmed(answer []byte) (approved, rejected bool) {
	action, confirm := getString(answer, "action"), string(get(get(answer, "content"), "confirm"))
	return action == "accept" && confirm == "true", action == "decline" || action == "accept" && confirm == "false"
}

// changed reports whether a confirmation was refused because the policy now requires more than
// when the client was asked.
func (hc *heldCalls) changed(ctx context.Context, x *exchange, h *calls.Held, refusal error) bool {
	if schema.KindOf(refusal) != schema.KindForbidden {
		return false
	}
	s, err := hc.calls.Get(ctx, h.CallID, x.principal)
	return err == nil && s.State == schema.StateHeld && s.Held != nil && (s.Held.ByCaller != h.ByCaller || s.Held.Level != h.Level)
}

// answerSpentToken answers a token that is no longer valid, with the outcome of its call if that is known.
func (hc *heldCalls) answerSpentToken(ctx context.Context, x *exchange, h *calls.Held, err error) ([]byte, *fault) {
	if schema.KindOf(err) == schema.KindNotFound {
		if s, findErr := hc.calls.Get(ctx, h.CallID, x.principal); findErr == nil && s.State.Ended() {
			return hc.tasks.end(ctx, x, s)
		}
		return errorResult(schema.AsError(err).Detail, metaError, dataOf(schema.AsError(err))), nil
	}
	return x.toolFault(err)
}

// await waits until a held call has ended and answers with its outcome. done is false if it has
// not ended in time.
func (hc *heldCalls) await(ctx context.Context, x *exchange, h *calls.Held) (result []byte, done bool, e *fault) {
	waiting, cancel := x.whileValid(ctx)
	defer cancel()
	defer context.AfterFunc(hc.leaving, cancel)()
	s, err := hc.calls.Wait(waiting, h.CallID, x.principal, holdFor)
	switch {
	case ctx.Err() != nil:
		return nil, true, x.faultOf(schema.Errorf(schema.KindCanceled, "The caller no longer waits for the call."))
	case hc.leaving.Err() != nil:
		return nil, false, nil // the client retries at another front door
	case invalidated(waiting) != nil:
		return nil, true, x.faultOf(invalidated(waiting))
	case err != nil:
		return nil, true, x.faultOf(err)
	case !s.State.Ended():
		return nil, false, nil
	}
	result, e = hc.tasks.end(ctx, x, s)
	return result, true, e
}

// confirmation is the machine-readable description of a held call, with the same JSON as REST.
type confirmation struct {
	RequiresConfirmation bool              `json:"requires_confirmation"`
	ConfirmationID       string            `json:"confirmation_id,omitempty"`
	CallID               schema.CallID     `json:"call_id"`
	ApprovalID           schema.ApprovalID `json:"approval_id"`
	ApprovalURL          string            `json:"approval_url,omitempty"`
	RiskLevel            int               `json:"risk_level"`
	Reasons              []string          `json:"reasons,omitempty"`
	ServerID             schema.ServerID   `json:"server_id"`
	ToolName             string            `json:"tool_name"`
	ExpiresAt            time.Time         `json:"expires_at"`
}

// result returns instructions for a client that cannot be asked.
func (hc *heldCalls) result(h *calls.Held, token string) []byte {
	c := confirmation{
		RequiresConfirmation: true, ConfirmationID: token, CallID: h.CallID, ApprovalID: h.ApprovalID, RiskLevel: h.Level, Reasons: h.Reasons,
		ServerID: h.Server, ToolName: h.Tool, ExpiresAt: h.Expires,
	}
	text := fmt.Sprintf("This call is held and has not run: the tool %q of server %q requires approval", h.Tool, h.Server)
	if len(h.Reasons) > 0 {
		text += " (" + risk.JoinReasons(h.Reasons) + ")"
	}
	until := h.Expires.UTC().Format(time.RFC3339)
	if token != "" {
		text += fmt.Sprintf(". Ask the user. To run it once, before %s: POST /confirmations/%s with {\"confirm\":true} at the REST API of Callyard; {\"confirm\":false} refuses it.", until, token)
	} else {
		c.ApprovalURL = hc.page(h)
		text += ". Somebody else must approve it before " + until
		if c.ApprovalURL != "" {
			text += ": " + c.ApprovalURL
		}
		text += ". Do not send it again."
	}
	text += " GET /calls/" + string(h.CallID) + "?wait=60 returns the outcome."
	about, err := json.Marshal(c)
	if err != nil {
		about = nil // strings and numbers always marshal
	}
	return errorResult(text, metaConfirmation, about)
}

// isGone reports whether an error means that the call is not known.
func isGone(err error) bool { return schema.KindOf(err) == schema.KindNotFound }
