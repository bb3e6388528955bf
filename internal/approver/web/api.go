package web

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
	"github.com/callyard/callyard/pkg/schema/digest"
	"github.com/callyard/callyard/pkg/schema/validate"
)

// listRoute is the operation that has query parameters.
const listRoute = "GET /approvals"

//go:embed openapi.json
var openapi []byte

func (h *Handler) registerAPI() {
	h.api(listRoute, h.page("/", h.listApprovals))
	h.api("GET /approvals/{id}", h.page("/a/", h.getApproval))
	h.api("POST /approvals/{id}/decisions", h.postDecision)
	h.api("POST /decisions", h.postDecisions)
	h.api("GET /permissions", h.getPermissions)
	h.api("POST /permissions/{id}/revocations", h.postRevocation)
	h.api("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "application/json")
		_, err := w.Write(openapi)
		return err
	})
	h.api("GET /livez", func(w http.ResponseWriter, _ *http.Request) error {
		return send(w, map[string]string{"status": "ok"})
	})
	h.api("GET /readyz", func(w http.ResponseWriter, _ *http.Request) error {
		if err := h.o.Ready(); err != nil {
			return schema.Errorf(schema.KindUnavailable, "Not ready: %w.", err)
		}
		return send(w, map[string]string{"status": "ready"})
	})
}

func (h *Handler) api(route string, f func(http.ResponseWriter, *http.Request) error) {
	h.routes = append(h.routes, route)
	h.handle(route, func(w http.ResponseWriter, r *http.Request) {
		err := h.checkQuery(route, r)
		if err == nil {
			err = f(w, r)
		}
		if err != nil {
			h.fault(r, err)
			problem.Write(w, err)
		}
	})
}

// checkQuery refuses query parameters that the operation does not take. Pages have
// some of their own.
func (h *Handler) checkQuery(route string, r *http.Request) error {
	if r.URL.RawQuery == "" || route == listRoute || asksForPage(r) {
		return nil
	}
	for name := range r.URL.Query() {
		return errNoParameter(name)
	}
	return nil
}

func errNoParameter(name string) error {
	return schema.Errorf(schema.KindInvalidRequest, "There is no parameter %s here; GET /openapi.json lists them.", strconv.QuoteToASCII(name[:min(len(name), 64)]))
}

// page sends a browser that opens an address of the API to the page about it: it
// asks for HTML and has no key.
func (h *Handler) page(prefix string, f func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Vary", "Accept")
		if asksForPage(r) {
			to := prefix
			if id := r.PathValue("id"); id != "" {
				to += url.PathEscape(id)
			}
			http.Redirect(w, r, to, http.StatusSeeOther)
			return nil
		}
		return f(w, r)
	}
}

// asksForPage says that a browser asks: for HTML, and without a key.
func asksForPage(r *http.Request) bool {
	return r.Header.Get("Authorization") == "" && r.Header.Get("X-Api-Key") == "" && strings.HasPrefix(r.Header.Get("Accept"), "text/html")
}

// caller is who sends a request of the API: by key, never by cookie.
func (h *Handler) caller(r *http.Request) (schema.Principal, error) {
	switch {
	case h.unguarded():
		return schema.Principal{Name: authn.Local, Groups: h.o.LocalGroups}, nil
	case !h.o.Keys.Configured():
		return schema.Principal{}, errNoKeys()
	}
	return h.o.Keys.Authenticate(r)
}

// summary is an approval in a list.
type summary struct {
	ID              string           `json:"id"`
	CallID          string           `json:"call_id"`
	State           ledger.State     `json:"state"`
	Requester       ledger.Requester `json:"requester"`
	Server          string           `json:"server"`
	Tool            string           `json:"tool"`
	RiskLevel       int              `json:"risk_level"`
	Reasons         []string         `json:"reasons"`
	ArgumentsDigest string           `json:"arguments_digest"`
	Edited          bool             `json:"edited"`
	Needed          int              `json:"needed"`
	Agreed          int              `json:"agreed"`
	Created         time.Time        `json:"created_at"`
	Expires         time.Time        `json:"expires_at"`
	ExpiresIn       int64            `json:"expires_in_ms"`
	// Kinds are the answers that count from the one who asks, Blocked is why none does.
	Kinds   []ledger.DecisionKind `json:"may"`
	Blocked string                `json:"may_not_because,omitempty"`
}

// payload is bytes with their name.
type payload struct {
	Digest string  `json:"digest"`
	Size   int     `json:"size"`
	Base64 string  `json:"base64"`
	Text   *string `json:"text,omitempty"` // where the bytes are UTF-8
	// Forgotten says why base64 and text are empty: the bytes are not kept any more.
	Forgotten string `json:"forgotten,omitempty"`
}

func payloadOf(b []byte) *payload {
	p := &payload{Digest: digest.Of(b), Size: len(b), Base64: base64.StdEncoding.EncodeToString(b)}
	if utf8.Valid(b) {
		text := string(b)
		p.Text = &text
	}
	return p
}

// forgotten stands for arguments that are not kept any more.
func forgotten(q *question) *payload {
	bound, size := q.Bound(), q.ArgumentsSize
	if q.Edited != nil {
		size = q.Edited.Size
	}
	return &payload{Digest: bound.ArgumentsDigest, Size: int(size), Forgotten: q.Forgotten}
}

type ruleShape struct {
	By              string   `json:"by"`
	Groups          []string `json:"groups"`
	Needed          int      `json:"needed"`
	EscalateTo      []string `json:"escalate_to"`
	ReasonRequired  bool     `json:"reason_required"`
	FreshSignInOnly bool     `json:"fresh_sign_in_required"`
}

// detail is everything that a person needs to decide.
type detail struct {
	summary
	Arguments     *payload          `json:"arguments"`
	Asked         *payload          `json:"asked_arguments,omitempty"`
	EditedBy      *ledger.Edited    `json:"edit,omitempty"`
	Definition    *payload          `json:"tool_definition,omitempty"`
	ToolDigest    string            `json:"tool_definition_digest"`
	ToolChange    *toolChange       `json:"tool_change"`
	PolicyVersion string            `json:"policy_version"`
	BindingDigest string            `json:"binding_digest"`
	Rule          ruleShape         `json:"rule"`
	Escalated     *time.Time        `json:"escalated_at,omitempty"`
	Decisions     []ledger.Decision `json:"decisions"`
	Restarts      []restart         `json:"restarts,omitempty"`
	NoPermission  string            `json:"may_not_allow_because,omitempty"`
	Safe          bool              `json:"safe_to_repeat"`
	ToolError     bool              `json:"tool_error"`
	Error         *schema.Error     `json:"error,omitempty"`
}

// restart says when and why the approval started again under another rule.
type restart struct {
	At            time.Time `json:"at"`
	Reason        string    `json:"reason"`
	By            string    `json:"by,omitempty"`
	PolicyVersion string    `json:"policy_version"`
}

func restartsOf(q *question) (all []restart) {
	for _, r := range q.Restarts {
		all = append(all, restart{r.At, r.Reason, r.By, r.PolicyVersion})
	}
	return all
}

func (h *Handler) summaryOf(q *question) summary {
	b := q.Bound()
	s := summary{
		ID: q.ID, CallID: q.CallID, State: q.State, Requester: b.Requester, Server: b.Server, Tool: b.Tool, RiskLevel: b.Level,
		Reasons: some(q.Reasons), ArgumentsDigest: b.ArgumentsDigest, Edited: q.Edited != nil, Needed: max(q.Rule.Needed, 1), Agreed: q.Agreed,
		Created: q.Created, Expires: q.Expires, Kinds: []ledger.DecisionKind{}, Blocked: q.Blocked,
	}
	if !q.State.Ended() {
		s.ExpiresIn = left(q.Approval, h.o.Now()).Milliseconds()
	}
	if q.Blocked == "" {
		s.Kinds = some(q.Kinds)
	}
	return s
}

// some makes of no list an empty one, which is [] and not null.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

const (
	pageLimit    = 100
	maxPageLimit = 1000
)

// listApprovals answers GET /approvals.
func (h *Handler) listApprovals(w http.ResponseWriter, r *http.Request) error {
	who, err := h.caller(r)
	if err != nil {
		return err
	}
	f, cursor, err := filterOf(r.URL.Query())
	if err != nil {
		return err
	}
	found, next := h.list(f, cursor, who)
	out := struct {
		Approvals []summary `json:"approvals"`
		Next      string    `json:"next_cursor,omitempty"`
	}{make([]summary, 0, len(found)), next}
	for _, q := range found {
		out.Approvals = append(out.Approvals, h.summaryOf(q))
	}
	return send(w, out)
}

func filterOf(values url.Values) (f ledger.Filter, cursor string, err error) {
	f.Limit = pageLimit
	for name, given := range values {
		bad := func(format string, args ...any) error {
			return schema.Errorf(schema.KindInvalidRequest, "The parameter "+format, args...)
		}
		if len(given) > 1 && name != "state" {
			return f, "", bad("%q is given twice.", name)
		}
		switch name {
		case "state":
			for _, text := range given {
				for one := range strings.SplitSeq(text, ",") {
					if !slices.Contains(ledger.States(), ledger.State(one)) {
						return f, "", bad("state names no state of an approval; take one of %v.", ledger.States())
					}
					f.States = append(f.States, ledger.State(one))
				}
			}
		case "server":
			f.Server = given[0]
		case "tool":
			f.Tool = given[0]
		case "requester":
			f.Requester = given[0]
		case "cursor":
			if cursor = given[0]; cursor != "" && !plainID(cursor) {
				return f, "", bad("cursor must be the next_cursor of a page.")
			}
		case "limit":
			if f.Limit, err = strconv.Atoi(given[0]); err != nil || f.Limit < 1 || f.Limit > maxPageLimit {
				return f, "", bad("limit must be a number from 1 to %d.", maxPageLimit)
			}
		default:
			return f, "", errNoParameter(name)
		}
	}
	return f, cursor, nil
}

// list returns a page of what concerns the person, and the cursor of the next.
func (h *Handler) list(f ledger.Filter, cursor string, who schema.Principal) (found []*question, next string) {
	limit := f.Limit
	f.Limit = maxPageLimit
	for {
		page, more := h.o.Ledger.List(f, cursor)
		for _, a := range page {
			q, ok := h.see(a, who)
			if !ok {
				continue
			}
			if len(found) == limit {
				return found, found[limit-1].ID
			}
			found = append(found, q)
		}
		if cursor = more; cursor == "" {
			return found, ""
		}
	}
}

// getApproval answers GET /approvals/{id}.
func (h *Handler) getApproval(w http.ResponseWriter, r *http.Request) error {
	who, err := h.caller(r)
	if err != nil {
		return err
	}
	q, err := h.read(r.Context(), r.PathValue("id"), who)
	if err != nil {
		return err
	}
	d := detail{
		summary: h.summaryOf(q), Arguments: payloadOf(q.Arguments), EditedBy: q.Edited,
		ToolDigest: q.Binding.ToolDefinitionDigest, ToolChange: q.Change, PolicyVersion: q.Bound().PolicyVersion, BindingDigest: q.BindingDigest,
		Rule: ruleShape{
			By: q.Rule.By, Groups: some(q.Rule.Groups), Needed: max(q.Rule.Needed, 1), EscalateTo: some(q.Rule.EscalateTo),
			ReasonRequired: q.Rule.Reasons, FreshSignInOnly: q.Rule.FreshLogin,
		},
		Decisions: some(q.Decisions), Restarts: restartsOf(q), NoPermission: q.NotAgain(), Safe: q.Safe, ToolError: q.ToolError, Error: q.Approval.Error,
	}
	if q.Forgotten != "" {
		d.Arguments = forgotten(q)
	}
	if len(q.Asked) > 0 {
		d.Asked = payloadOf(q.Asked)
	}
	if len(q.Definition) > 0 {
		d.Definition = payloadOf(q.Definition)
	}
	if !q.Escalated.IsZero() {
		d.Escalated = &q.Escalated
	}
	return send(w, d)
}

// postDecision answers POST /approvals/{id}/decisions.
func (h *Handler) postDecision(w http.ResponseWriter, r *http.Request) error {
	who, err := h.caller(r)
	if err != nil {
		return err
	}
	body, err := h.body(w, r, "application/json", h.o.ArgumentBytes+bodyRoom)
	if err != nil {
		return err
	}
	if err := h.shapes.check(shapeAnswer, body); err != nil {
		return err
	}
	answer, err := answerOf(body)
	if err != nil {
		return err
	}
	// A key proves no fresh sign-in: that is for pages.
	q, err := h.decide(r.Context(), r.PathValue("id"), answer, who, "api")
	if err != nil {
		return err
	}
	return send(w, h.summaryOf(q))
}

// answerOf reads a decision. Arguments stay the bytes of their member.
func answerOf(body []byte) (a approval.Answer, err error) {
	if err := validate.Value(body, len(body)+1, 0); err != nil {
		return a, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return a, schema.Errorf(schema.KindInvalidRequest, "The body must be a JSON object with the member kind.")
	}
	return answerFrom(members)
}

func answerFrom(members map[string]json.RawMessage) (a approval.Answer, err error) {
	for name, raw := range members {
		var text *string
		switch name {
		case "kind":
			text = (*string)(&a.Kind)
		case "reason":
			text = &a.Reason
		case "digest":
			text = &a.Digest
		case "arguments":
			a.Arguments = raw
			continue
		case "allow":
			if a.Allow, err = allowOf(raw); err != nil {
				return a, err
			}
			continue
		default:
			return a, schema.Errorf(schema.KindInvalidRequest, "A decision has the members kind, reason, digest, arguments and allow, and no others.")
		}
		if bytes.Equal(raw, []byte("null")) || json.Unmarshal(raw, text) != nil {
			return a, schema.Errorf(schema.KindInvalidRequest, "The member %s must be a text.", name)
		}
	}
	if a.Arguments != nil && a.Kind != ledger.Edit {
		return a, schema.Errorf(schema.KindInvalidRequest, "The member arguments belongs to the kind edit only.")
	}
	return a, nil
}

// bodyRoom is for what stands around the arguments.
const bodyRoom = 64 << 10

// body reads at most most bytes of the given media type.
func (h *Handler) body(w http.ResponseWriter, r *http.Request, media string, most int) ([]byte, error) {
	if got, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || got != media {
		return nil, schema.Errorf(problem.KindMediaType, "The body must be sent as %s.", media)
	}
	return h.whole(w, r, most, "The body is over the limit of %d bytes; send less, or ask the operator to raise argument_bytes.", most)
}

// What all bodies that are being read or worked on may take of memory at once: those
// of up to 64 KiB, and what larger ones take beyond that.
const (
	smallBodies = 16 << 20
	largeBodies = 32 << 20
)

// lotOf is the key under which a request has what its body takes of the room.
type lotOf struct{}

// whole reads the body. tooLarge says that it is over most bytes.
func (h *Handler) whole(w http.ResponseWriter, r *http.Request, most int, tooLarge string, limit int) ([]byte, error) {
	lot, ok := r.Context().Value(lotOf{}).(*bodies.Lot)
	if !ok {
		return nil, schema.Errorf(schema.KindInternal, "The body has no room.")
	}
	body, err := h.bodies.Read(lot, r.Body, r.ContentLength, most)
	switch {
	case err == nil:
		return body, nil
	case errors.Is(err, bodies.ErrTooLong):
		w.Header().Set("Connection", "close")
		return nil, schema.Errorf(schema.KindTooLarge, tooLarge, limit)
	case errors.Is(err, bodies.ErrFull):
		w.Header().Set("Connection", "close")
		e := schema.Errorf(schema.KindUnavailable, "The approver holds as many large bodies as it may; nothing was done. Send it again in a moment.")
		e.Retryable, e.RetryAfter = true, time.Second
		return nil, e
	}
	return nil, schema.Errorf(schema.KindInvalidRequest, "The body did not arrive whole; send it again.")
}

// send answers with JSON.
func send(w http.ResponseWriter, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return schema.Errorf(schema.KindInternal, "The answer cannot be encoded: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b.Bytes()) // the caller went away; nobody is left to be told
	return nil
}
