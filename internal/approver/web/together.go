package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
	"github.com/callyard/callyard/pkg/schema/validate"
)

const (
	// maxTogether is how many calls are decided with one request.
	maxTogether = 50
	// maxTogetherBytes is how many bytes of arguments one page shows; the first
	// call is always on it, whole.
	maxTogetherBytes = 4 << 20
	// pickPrefix begins the name of a field that chooses a call; its value is the
	// digest of the arguments that were shown.
	pickPrefix = "pick."
)

// togetherPage lists several calls with everything that a decision needs.
type togetherPage struct {
	Calls []detailPage
	// Left is how many more there are that this page has no room for.
	Left    int
	Can     int // how many of them the one who looks may decide
	Stale   bool
	Reasons bool // one of them wants a reason
	Token   string
	Presets []string
}

// chosen are the approvals that the address of the page names: those with the ids,
// or all that wait of a requester.
func (h *Handler) chosen(q url.Values, who schema.Principal) ([]string, error) {
	var ids []string
	for name, given := range q {
		switch name {
		case "id":
			ids = append(ids, given...)
		case "requester":
			for _, a := range h.o.Ledger.Pending() {
				if a.Binding.Requester.Name != given[0] {
					continue
				}
				if one, ok := h.see(a, who); ok && one.Blocked == "" {
					ids = append(ids, a.ID)
				}
			}
		case "arrived":
		default:
			return nil, schema.Errorf(schema.KindInvalidRequest, "There is no parameter of that name here.")
		}
	}
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) == 0 {
		return nil, schema.Errorf(schema.KindInvalidRequest, "No call was chosen. Go back to the list and choose some.")
	}
	return ids, nil
}

// showTogether shows several calls on one page.
func (h *Handler) showTogether(w http.ResponseWriter, r *http.Request) error {
	v, ok, err := h.enter(w, r)
	if !ok {
		return err
	}
	ids, err := h.chosen(r.URL.Query(), v.who)
	if err != nil {
		return err
	}
	p := togetherPage{Token: h.formToken(v.cookie, "/together"), Presets: presets()}
	room := maxTogetherBytes
	for i, id := range ids {
		q, err := h.read(r.Context(), id, v.who)
		if err != nil {
			return err
		}
		if room -= len(q.Arguments) + len(q.Asked); len(p.Calls) == maxTogether || room < 0 && len(p.Calls) > 0 {
			p.Left = len(ids) - i
			break
		}
		d := h.detailOf(q, v)
		d.Args.Label = fmt.Sprintf("Arguments of call %d", i+1)
		d.Before.Label = fmt.Sprintf("Arguments that were asked for in call %d", i+1)
		p.Calls = append(p.Calls, d)
		if d.Choosable() {
			p.Can++
			p.Stale = p.Stale || !d.Fresh
			p.Reasons = p.Reasons || q.Rule.Reasons
		}
	}
	title := fmt.Sprintf("%d calls together", len(p.Calls))
	return h.render(w, http.StatusOK, "together", v, view{Title: title, Live: "page", Page: p})
}

// Choosable says that the one who looks may decide the call at all.
func (p detailPage) Choosable() bool { return p.MayApprove() && p.State == ledger.Pending }

// outcome is what came of one of several decisions.
type outcome struct {
	ID     string
	Server string
	Tool   string
	After  *question // nil where it was refused
	Err    error
}

// Refusal is the sentence of a refusal; empty where there was none.
func (o outcome) Refusal() string {
	if o.Err == nil {
		return ""
	}
	return problem.Of(o.Err).Detail
}

// takeTogether takes a decision on several calls. Each is decided by itself, as if
// it were the only one; the answer says what came of each.
func (h *Handler) takeTogether(w http.ResponseWriter, r *http.Request) error {
	v, ok, err := h.enter(w, r)
	if !ok {
		return err
	}
	if err := h.form(w, r); err != nil {
		return err
	}
	f := r.PostForm
	answer := approval.Answer{Kind: ledger.DecisionKind(f.Get("kind")), Reason: strings.TrimSpace(f.Get("reason")), Fresh: v.fresh}
	if answer.Kind != ledger.Approve && answer.Kind != ledger.Deny {
		return schema.Errorf(schema.KindInvalidRequest, "Say whether the calls shall run or not; nothing was done. Go back and choose one.")
	}
	if answer.Reason == "" && answer.Kind == ledger.Deny {
		answer.Reason = f.Get("preset")
	}
	var ids []string
	for name := range f {
		if id, ok := strings.CutPrefix(name, pickPrefix); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	switch {
	case len(ids) == 0:
		return schema.Errorf(schema.KindInvalidRequest, "No call was chosen; nothing was done. Go back and choose some.")
	case len(ids) > maxTogether:
		return schema.Errorf(schema.KindInvalidRequest, "More than %d calls were chosen; nothing was done. Choose fewer.", maxTogether)
	}
	var outcomes []outcome
	for _, id := range ids {
		answer.Digest = f.Get(pickPrefix + id)
		outcomes = append(outcomes, h.decideOne(r, id, answer, v.who, "web"))
	}
	return h.render(w, http.StatusOK, "outcomes", v, view{Title: "What came of it", Page: outcomesPage{Kind: answer.Kind, All: outcomes}})
}

type outcomesPage struct {
	Kind ledger.DecisionKind
	All  []outcome
}

// Done counts the decisions that are recorded.
func (p outcomesPage) Done() (n int) {
	for _, o := range p.All {
		if o.Err == nil {
			n++
		}
	}
	return n
}

func (h *Handler) decideOne(r *http.Request, id string, answer approval.Answer, who schema.Principal, channel string) outcome {
	o := outcome{ID: id}
	if o.After, o.Err = h.decide(r.Context(), id, answer, who, channel); o.Err != nil {
		h.fault(r, o.Err)
		o.name(r.Context(), h, who)
		return o
	}
	o.Server, o.Tool = o.After.Binding.Server, o.After.Binding.Tool
	return o
}

// name finds out what a refused one was about, where the person may know.
func (o *outcome) name(ctx context.Context, h *Handler, who schema.Principal) {
	if q, err := h.find(ctx, o.ID, who); err == nil {
		o.Server, o.Tool = q.Binding.Server, q.Binding.Tool
	}
}

// postDecisions answers POST /decisions.
func (h *Handler) postDecisions(w http.ResponseWriter, r *http.Request) error {
	who, err := h.caller(r)
	if err != nil {
		return err
	}
	body, err := h.body(w, r, "application/json", h.o.ArgumentBytes+bodyRoom)
	if err != nil {
		return err
	}
	if err := h.shapes.check(shapeAnswers, body); err != nil {
		return err
	}
	asked, err := decisionsOf(body)
	if err != nil {
		return err
	}
	type result struct {
		ID       string            `json:"id"`
		Status   int               `json:"status"`
		Approval *summary          `json:"approval,omitempty"`
		Problem  *problem.Document `json:"problem,omitempty"`
	}
	out := struct {
		Results []result `json:"results"`
	}{make([]result, 0, len(asked))}
	for _, one := range asked {
		o := h.decideOne(r, one.id, one.answer, who, "api")
		res := result{ID: one.id, Status: http.StatusOK}
		if o.Err != nil {
			d := problem.Of(o.Err)
			res.Status, res.Problem = d.Status, &d
		} else {
			s := h.summaryOf(o.After)
			res.Approval = &s
		}
		out.Results = append(out.Results, res)
	}
	return send(w, out)
}

type asked struct {
	id     string
	answer approval.Answer
}

// decisionsOf reads a list of decisions. One that cannot be read refuses them all:
// nothing has been decided by then.
func decisionsOf(body []byte) ([]asked, error) {
	if err := validate.Value(body, len(body)+1, 0); err != nil {
		return nil, err
	}
	bad := func(format string, args ...any) ([]asked, error) {
		return nil, schema.Errorf(schema.KindInvalidRequest, format, args...)
	}
	var whole map[string]json.RawMessage
	var list []map[string]json.RawMessage
	if json.Unmarshal(body, &whole) != nil || len(whole) != 1 || json.Unmarshal(whole["decisions"], &list) != nil {
		return bad("The body must be a JSON object with the member decisions, a list of objects, and no other.")
	}
	if len(list) == 0 || len(list) > maxTogether {
		return bad("One request takes 1 to %d decisions.", maxTogether)
	}
	seen := make(map[string]bool, len(list))
	out := make([]asked, 0, len(list))
	for i, members := range list {
		var one asked
		raw := members["id"]
		if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &one.id) != nil || !plainID(one.id) {
			return bad("Decision %d has no id of an approval; nothing was decided.", i+1)
		}
		if seen[one.id] {
			return bad("Decision %d is about an approval that another one names; nothing was decided.", i+1)
		}
		seen[one.id] = true
		delete(members, "id")
		var err error
		if one.answer, err = answerFrom(members); err != nil {
			return bad("Decision %d cannot be read, so nothing was decided. %s", i+1, schema.AsError(err).Detail)
		}
		out = append(out, one)
	}
	return out, nil
}
