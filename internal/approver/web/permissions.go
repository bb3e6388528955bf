package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// allowKind is the form that approves a call and allows calls like it. What is
// recorded is an approval.
const allowKind ledger.DecisionKind = "allow"

// span is how long a permission may be good for.
type span struct {
	Words string
	For   time.Duration
}

func spans() []span {
	return []span{{"1 hour", time.Hour}, {"8 hours", 8 * time.Hour}, {"1 day", 24 * time.Hour}, {"3 days", 72 * time.Hour}, {"7 days", 7 * 24 * time.Hour}}
}

// leaf is a value in the arguments that a permission can hold fast.
type leaf struct {
	Pointer string
	Text    []byte
	Long    int // how many bytes it has, where that is too many to repeat
}

const (
	maxLeaves = 32
	longLeaf  = 300
	samePlace = "same." // begins the name of a field that chooses a place
)

// leaves are the values in the arguments that are no objects and no lists, in
// their order; nil where there are none, or too many to choose from.
func leaves(args []byte) (found []leaf) {
	d := json.NewDecoder(bytes.NewReader(args))
	ok := walk(d, "", 0, func(pointer string, raw []byte) bool {
		l := leaf{Pointer: pointer, Text: raw}
		if len(raw) > longLeaf {
			l.Text, l.Long = nil, len(raw)
		}
		found = append(found, l)
		return len(found) <= maxLeaves
	})
	if !ok {
		return nil
	}
	return found
}

// maxWalk is how deep places are looked for; arguments are not deeper.
const maxWalk = 64

func walk(d *json.Decoder, at string, depth int, each func(string, []byte) bool) bool {
	var raw json.RawMessage
	if depth > maxWalk || d.Decode(&raw) != nil {
		return false
	}
	raw = bytes.TrimLeft(raw, " \t\r\n")
	inner := json.NewDecoder(bytes.NewReader(raw))
	switch raw[0] {
	case '{':
		_, _ = inner.Token() // it was read whole above
		for inner.More() {
			key, err := inner.Token()
			name, isName := key.(string)
			if err != nil || !isName || !walk(inner, at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), depth+1, each) {
				return false
			}
		}
		return true
	case '[':
		_, _ = inner.Token()
		for i := 0; inner.More(); i++ {
			if !walk(inner, at+"/"+strconv.Itoa(i), depth+1, each) {
				return false
			}
		}
		return true
	}
	return each(at, raw)
}

// MayAllow says that a permission can be given with this approval at all. The
// desk says the same, and decides.
func (p detailPage) MayAllow() bool {
	return p.Blocked == "" && p.State == ledger.Pending && p.NotAgain() == ""
}

// NotAgain says why no permission can be given with this approval; "" where one can.
func (q *question) NotAgain() string {
	_, why := approval.NoPermission(q.Approval, q.Rule)
	return why
}

// Leaves are the places that can be held fast.
func (p detailPage) Leaves() []leaf { return leaves(p.Arguments) }

// Spans are the times to choose from.
func (detailPage) Spans() []span { return spans() }

// wish reads the form of a permission.
func (h *Handler) wish(f url.Values) (*ledger.Allow, error) {
	allow := &ledger.Allow{Pattern: ledger.Pattern{Kind: ledger.PatternKind(f.Get("pattern"))}}
	i := slices.IndexFunc(spans(), func(s span) bool { return s.For.String() == f.Get("for") })
	if i < 0 {
		return nil, schema.Errorf(schema.KindInvalidRequest, "Choose how long the same may run again.")
	}
	allow.Until = h.o.Now().Add(spans()[i].For)
	if text := strings.TrimSpace(f.Get("uses")); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1_000_000 {
			return nil, schema.Errorf(schema.KindInvalidRequest, "How often the same may run again must be a number from 1; leave it empty for no limit.")
		}
		allow.MaxUses = n
	}
	if allow.Pattern.Kind == ledger.SameValues {
		for name := range f {
			if pointer, ok := strings.CutPrefix(name, samePlace); ok {
				allow.Pattern.Values = append(allow.Pattern.Values, ledger.Value{Pointer: pointer})
			}
		}
		slices.SortFunc(allow.Pattern.Values, func(a, b ledger.Value) int { return strings.Compare(a.Pointer, b.Pointer) })
	}
	return allow, nil
}

// allowOf reads the member allow of a decision.
func allowOf(raw json.RawMessage) (*ledger.Allow, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	allow := new(ledger.Allow)
	if len(raw) == 0 || raw[0] != '{' || d.Decode(allow) != nil {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The member allow must be an object with until, pattern and max_uses, as GET /openapi.json says.")
	}
	return allow, nil
}

// standing is a permission as one person sees it.
type standing struct {
	ledger.Permission
	State string // good, over, used up or revoked
	// May says that this person can take it back, Token that of the form.
	May   bool
	Token string
	// NeedsReason says that it takes a reason.
	NeedsReason bool
}

// permissions are those that concern the person.
func (h *Handler) permissions(r *http.Request, v visitor) (seen []standing) {
	now := h.o.Now()
	for _, p := range h.o.Desk.Permissions(r.Context()) {
		rule := &risk.Approval{}
		if err := json.Unmarshal(p.Rule, rule); err != nil {
			h.o.Log.Error("a permission has no readable rule", "permission_id", p.ID, "error", err)
			continue
		}
		s := standing{Permission: p, State: permissionState(&p, now), NeedsReason: rule.Reasons}
		decides := overlap(rule.Groups, v.who.Groups) || overlap(rule.EscalateTo, v.who.Groups) || samePerson(v.who, p.By, p.Owner)
		if !decides && !samePerson(v.who, p.Requester.Name, p.Requester.Owner) && !overlap(h.o.Observers, v.who.Groups) && !h.unguarded() {
			continue
		}
		if s.May = decides && s.State == "good"; s.May {
			s.Token = h.formToken(v.cookie, "/permissions/"+p.ID+"/revoke")
		}
		seen = append(seen, s)
	}
	return seen
}

func samePerson(who schema.Principal, name, owner string) bool {
	behind := func(name, owner string) string {
		if owner != "" {
			return owner
		}
		return name
	}
	return strings.EqualFold(behind(who.Name, who.Owner), behind(name, owner))
}

func permissionState(p *ledger.Permission, now time.Time) string {
	switch {
	case p.Revoked != nil:
		return "revoked"
	case !now.Before(p.Until):
		return "over"
	case p.MaxUses > 0 && p.Uses >= p.MaxUses:
		return "used up"
	}
	return "good"
}

type permissionsPage struct {
	All     []standing
	Done    bool
	Refusal string
}

func (h *Handler) showPermissions(w http.ResponseWriter, r *http.Request) error {
	v, ok, err := h.enter(w, r)
	if !ok {
		return err
	}
	page := permissionsPage{All: h.permissions(r, v), Done: r.URL.Query().Get("done") == "revoke"}
	return h.render(w, http.StatusOK, "permissions", v, view{Title: "Permissions", Here: "/permissions", Page: page})
}

// takeRevocation takes a permission back from its page.
func (h *Handler) takeRevocation(w http.ResponseWriter, r *http.Request) error {
	v, ok, err := h.enter(w, r)
	if !ok {
		return err
	}
	if err := h.form(w, r); err != nil {
		return err
	}
	if _, err = h.revoke(r, v, r.PathValue("id"), strings.TrimSpace(r.PostForm.Get("reason"))); err == nil {
		http.Redirect(w, r, "/permissions?done=revoke", http.StatusSeeOther)
		return nil
	}
	h.fault(r, err)
	d := problem.Of(err)
	page := permissionsPage{All: h.permissions(r, v), Refusal: d.Detail}
	return h.render(w, d.Status, "permissions", v, view{Title: "Permissions", Here: "/permissions", Page: page})
}

// revoke takes a permission back. One that does not concern the person is not
// there.
func (h *Handler) revoke(r *http.Request, v visitor, id, reason string) (*ledger.Permission, error) {
	if len(reason) > maxReason {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The reason is longer than %d bytes; say it shorter.", maxReason)
	}
	if !slices.ContainsFunc(h.permissions(r, v), func(s standing) bool { return s.ID == id }) {
		return nil, schema.Errorf(schema.KindNotFound, "There is no such permission, or it is not yours to see.")
	}
	return h.o.Desk.RevokePermission(r.Context(), id, v.who, reason)
}

// permissionShape is a permission in the API.
type permissionShape struct {
	ID         string             `json:"id"`
	State      string             `json:"state"`
	ApprovalID string             `json:"approval_id"`
	Requester  ledger.Requester   `json:"requester"`
	Server     string             `json:"server"`
	Tool       string             `json:"tool"`
	ToolDigest string             `json:"tool_definition_digest"`
	Pattern    ledger.Pattern     `json:"pattern"`
	By         string             `json:"given_by"`
	Reason     string             `json:"reason,omitempty"`
	Given      time.Time          `json:"given_at"`
	Until      time.Time          `json:"until"`
	MaxUses    int                `json:"max_uses"`
	Uses       int                `json:"uses"`
	Revoked    *ledger.Revocation `json:"revoked,omitempty"`
	May        bool               `json:"may_revoke"`
}

func shapeOf(p *ledger.Permission, state string, may bool) permissionShape {
	return permissionShape{
		ID: p.ID, State: state, ApprovalID: p.ApprovalID, Requester: p.Requester, Server: p.Server, Tool: p.Tool, ToolDigest: p.ToolDefinitionDigest,
		Pattern: p.Pattern, By: p.By, Reason: p.Reason, Given: p.Given, Until: p.Until, MaxUses: p.MaxUses, Uses: p.Uses, Revoked: p.Revoked, May: may,
	}
}

// getPermissions answers GET /permissions, as a page to browsers.
func (h *Handler) getPermissions(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Vary", "Accept")
	if asksForPage(r) {
		if err := h.showPermissions(w, r); err != nil {
			h.fault(r, err)
			h.showError(w, r, err)
		}
		return nil
	}
	who, err := h.caller(r)
	if err != nil {
		return err
	}
	out := struct {
		Permissions []permissionShape `json:"permissions"`
	}{[]permissionShape{}}
	for _, s := range h.permissions(r, visitor{who: who}) {
		out.Permissions = append(out.Permissions, shapeOf(&s.Permission, s.State, s.May))
	}
	return send(w, out)
}

// postRevocation answers POST /permissions/{id}/revocations.
func (h *Handler) postRevocation(w http.ResponseWriter, r *http.Request) error {
	who, err := h.caller(r)
	if err != nil {
		return err
	}
	body, err := h.body(w, r, "application/json", bodyRoom)
	if err != nil {
		return err
	}
	if err := h.shapes.check(shapeRevocation, body); err != nil {
		return err
	}
	answer, err := answerOf(body)
	if err != nil || answer.Kind != "" || answer.Digest != "" || answer.Arguments != nil || answer.Allow != nil {
		return schema.Errorf(schema.KindInvalidRequest, "The body must be a JSON object with the member reason, or none.")
	}
	p, err := h.revoke(r, visitor{who: who}, r.PathValue("id"), answer.Reason)
	if err != nil {
		return err
	}
	return send(w, shapeOf(p, permissionState(p, h.o.Now()), false))
}
