package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// api is the JSON API, served through Huma. It is safe for concurrent use.
type api struct {
	o           *Options
	access      *access
	bodies      *bodyReader
	approvals   *approvals
	permissions *permissions
	huma        huma.API
	shapes      shapes
	document    object   // the OpenAPI document
	documented  []string // "METHOD /path"
}

func newAPI(o *Options, who *access, b *bodyReader, r *routes, as *approvals, ps *permissions, listPage http.HandlerFunc, grants *grantPages) (*api, error) {
	a := &api{o: o, access: who, bodies: b, approvals: as, permissions: ps, shapes: make(shapes)}
	before := len(r.all)
	a.huma = humago.New(r, documentConfig())
	a.huma.UseMiddleware(a.enter)
	a.register(listPage)
	if grants != nil {
		a.registerGrants(grants.grants, grants.list)
	}
	a.documented = r.all[before:]
	return a, a.finishDocument()
}

// register registers the operations. listPage shows the permissions to browsers.
func (a *api) register(listPage http.HandlerFunc) {
	get(a, operation("listApprovals", "GET /approvals", "List approvals, newest first",
		"You see an approval if you are in a group that decides it, requested it, took part in it, or are an observer. A browser without a key gets the page instead.",
		"A page of the approvals that you can see.", toPage("/")), a.listApprovals)
	get(a, operation("getApproval", "GET /approvals/{id}", "Get an approval with everything needed to decide",
		"The approval with its arguments, the definition of the tool, the rule and all decisions. An approval that you may not see returns the same answer as one that does not exist: 404. A browser without a key gets the page instead.",
		"The approval.", toPage("/a/")), a.getApproval)
	post(a, operation("decide", "POST /approvals/{id}/decisions", "Decide an approval",
		"Records your decision. It is refused with 403 if you may not decide, with 409 if the approval is decided already or its arguments have changed, and with 410 if it has expired. After a refusal, the approval is as before.",
		"The approval after the decision; still pending if more approvals are required.", nil), body{a.o.ArgumentBytes + maxEnvelope, "The decision.", exampleAnswer()}, a.decide)
	post(a, operation("decideTogether", "POST /decisions", "Decide several approvals independently",
		"Each decision is accepted or refused independently; the answer has the outcome of each. An invalid list decides nothing.",
		"The outcome of each decision, in the order of the list.", nil), body{a.o.ArgumentBytes + maxEnvelope, "The decisions.", exampleAnswers()}, a.decideSeveral)
	get(a, operation("listPermissions", "GET /permissions", "List the standing permissions that you can see",
		"You see a permission if you gave it, are in a group that decides such calls, are the caller whose calls it allows, or are an observer. A browser without a key gets the page instead.",
		"Newest first; permissions that ended or were revoked stay for some days.", listPage), a.listPermissions)
	post(a, operation("revokePermission", "POST /permissions/{id}/revocations", "Revoke a standing permission",
		"The person who gave the permission may revoke it, and so may members of the groups that decide such calls. If it is revoked already, the answer is 409.",
		"The permission; it allows no further calls.", nil), body{maxEnvelope, "The revocation.", map[string]any{"reason": "The migration is done."}}, a.revokePermission)
	a.registerDeliveries()
	get(a, public(operation("openapi", "GET /openapi.json", "This document", "The OpenAPI document of this approver. It requires no credential.", "This document.", nil)), func(context.Context, *struct{}) (object, error) { return a.document, nil })
	get(a, public(operation("livez", "GET /livez", "Liveness probe", "Succeeds while the process serves requests.", "The process is running.", nil)), func(context.Context, *struct{}) (Status, error) { return Status{"ok"}, nil })
	get(a, public(operation("readyz", readyPattern, "Readiness probe", "Succeeds while decisions can be recorded; else the answer is 503, and detail has the reason.", "Decisions are accepted.", nil)), func(context.Context, *struct{}) (Status, error) {
		if err := a.o.Ready(); err != nil {
			return Status{}, schema.Errorf(schema.KindUnavailable, "Not ready: %v.", err).RetryableAfter(time.Second)
		}
		return Status{"ready"}, nil
	})
}

// exchange holds the HTTP request and response in the context of an operation.
type exchange struct {
	w   http.ResponseWriter
	r   *http.Request
	who schema.Principal
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) exchange {
	x, _ := ctx.Value(exchangeKey{}).(exchange)
	return x
}

// enter performs the checks of all operations. It serves browsers the page instead, and refuses
// unknown parameters and missing keys.
func (a *api) enter(ctx huma.Context, next func(huma.Context)) {
	op := ctx.Operation()
	r, w := humago.Unwrap(ctx)
	x := exchange{w: w, r: r}
	if page, _ := op.Metadata[pageKey].(http.HandlerFunc); page != nil {
		w.Header().Set("Vary", "Accept")
		if asksForPage(r) {
			page(w, r)
			return
		}
	}
	err := checkQuery(op, r)
	if err == nil && op.Security == nil {
		x.who, err = a.access.caller(r)
	}
	if err != nil {
		a.o.fault(r.Context(), r.Pattern, err)
		problem.Write(w, err)
		return
	}
	next(huma.WithValue(ctx, exchangeKey{}, x))
}

// checkQuery refuses unknown query parameters of an operation. Pages have additional ones.
func checkQuery(op *huma.Operation, r *http.Request) error {
	if r.URL.RawQuery == "" || asksForPage(r) {
		return nil
	}
	values := r.URL.Query()
	switch op.OperationID {
	case "listApprovals":
		_, _, err := filterOf(values)
		return err
	case opDeliveries:
		return checkDeliveriesQuery(values)
	}
	for name := range values {
		return errNoParameter(name)
	}
	return nil
}

func errNoParameter(name string) error {
	return schema.Errorf(schema.KindInvalidRequest, "The parameter %s is unknown; GET /openapi.json lists the parameters.", strconv.QuoteToASCII(truncate.Head(name, 64)))
}

// toPage redirects a browser from an API address to the corresponding page.
func toPage(prefix string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, prefix+url.PathEscape(r.PathValue("id")), http.StatusSeeOther)
	}
}

// asksForPage reports whether the client is a browser: it accepts HTML and sends no key.
func asksForPage(r *http.Request) bool {
	return r.Header.Get("Authorization") == "" && r.Header.Get("X-Api-Key") == "" && strings.HasPrefix(r.Header.Get("Accept"), "text/html")
}

// output is the response of an operation.
type output[T any] struct{ Body T }

// get registers an operation without a body.
func get[I, O any](a *api, op huma.Operation, f func(context.Context, *I) (O, error)) {
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*output[O], error) {
		out, err := f(ctx, in)
		if err != nil {
			a.o.fault(ctx, exchangeOf(ctx).r.Pattern, err)
			d := problem.Of(err)
			return nil, problem.HumaError{Document: &d}
		}
		return &output[O]{out}, nil
	})
}

// body describes a JSON body of at most limit bytes.
type body struct {
	limit   int
	text    string
	example any
}

// post registers an operation with a JSON body. Huma does not read the body, because it must stay
// within the memory budget and be validated strictly against the document.
func post[I, B, O any](a *api, op huma.Operation, of body, f func(context.Context, *I, *B) (O, error)) {
	shape := a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[B](), true, "")
	name := strings.TrimPrefix(shape.Ref, schemaPrefix)
	a.shapes[name] = nil // compiled later, with the whole document
	get(a, op, func(ctx context.Context, in *I) (O, error) {
		var none O
		x := exchangeOf(ctx)
		attribute(x.r, &x.who)
		raw, err := a.bodies.json(x.w, x.r, of.limit)
		if err != nil {
			return none, err
		}
		sent := new(B)
		if err := a.shapes.read(name, raw, sent); err != nil {
			return none, err
		}
		return f(ctx, in, sent)
	})
	a.huma.OpenAPI().Paths[op.Path].Post.RequestBody = &huma.RequestBody{Description: of.text, Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: shape, Example: of.example}}}
}

func exampleAnswer() map[string]any {
	return map[string]any{"kind": "approve", "digest": "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", "reason": "The invoice is paid."}
}

func exampleAnswers() map[string]any {
	one := exampleAnswer()
	one["id"] = "appr_06b2t8m3c0w3v2q5n7k9a1d4fz"
	return map[string]any{"decisions": []any{one, map[string]any{"id": "appr_06b2t8m3c0w3v2q5n7k9a1d4g0", "kind": "deny", "reason": "Wrong account."}}}
}

// listInput holds the parameters of the list.
type listInput struct {
	State     []string `query:"state,explode" nullable:"false" enum:"pending,approved,denied,expired,revoked,canceled,running,succeeded,failed,unknown" doc:"Only approvals in these states."`
	Server    string   `query:"server" doc:"Only approvals for this server."`
	Tool      string   `query:"tool" doc:"Only approvals for this tool."`
	Requester string   `query:"requester" doc:"Only approvals requested by this principal."`
	Cursor    string   `query:"cursor" doc:"The next_cursor of the previous page."`
	Limit     int      `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"The maximum number of approvals."`
}

func (a *api) listApprovals(ctx context.Context, _ *listInput) (ApprovalList, error) {
	x := exchangeOf(ctx)
	// Same parser as the history page: states may also be comma-separated.
	f, cursor, err := filterOf(x.r.URL.Query())
	if err != nil {
		return ApprovalList{}, err
	}
	found, next := a.approvals.list(f, cursor, x.who)
	out := ApprovalList{Approvals: make([]Summary, 0, len(found)), Next: next}
	for _, q := range found {
		out.Approvals = append(out.Approvals, a.summaryOf(q))
	}
	return out, nil
}

// approvalInput identifies an approval.
type approvalInput struct {
	ID schema.ApprovalID `path:"id" pattern:"^[A-Za-z0-9_]{1,64}$" doc:"The id of the approval."`
}

func (a *api) getApproval(ctx context.Context, in *approvalInput) (Approval, error) {
	q, err := a.approvals.read(ctx, in.ID, exchangeOf(ctx).who)
	if err != nil {
		return Approval{}, err
	}
	return a.approvalOf(q), nil
}

func (a *api) decide(ctx context.Context, in *approvalInput, body *Answer) (Summary, error) {
	// A key does not prove a fresh sign-in. Only pages can.
	q, err := a.approvals.decide(ctx, in.ID, body.answer(), exchangeOf(ctx).who, "api")
	if err != nil {
		return Summary{}, err
	}
	return a.summaryOf(q), nil
}

func (a *api) decideSeveral(ctx context.Context, _ *struct{}, body *Answers) (Outcomes, error) {
	var out Outcomes
	if err := body.check(); err != nil {
		return out, err
	}
	who := exchangeOf(ctx).who
	out.Results = make([]Outcome, 0, len(body.Decisions))
	for i := range body.Decisions {
		one := &body.Decisions[i]
		o := a.approvals.decideOne(ctx, one.ID, one.answer(), who, "api")
		res := Outcome{ID: one.ID, Status: http.StatusOK}
		if o.Err != nil {
			d := problem.Of(o.Err)
			res.Status, res.Problem = d.Status, &d
		} else {
			s := a.summaryOf(o.After)
			res.Approval = &s
		}
		out.Results = append(out.Results, res)
	}
	return out, nil
}

func (a *api) listPermissions(ctx context.Context, _ *struct{}) (PermissionList, error) {
	out := PermissionList{[]Permission{}}
	for _, s := range a.permissions.list(exchangeOf(ctx).who) {
		out.Permissions = append(out.Permissions, permissionOf(&s.Permission, s.State, s.May))
	}
	return out, nil
}

// permissionInput identifies a permission.
type permissionInput struct {
	ID string `path:"id" doc:"The id of the permission."`
}

func (a *api) revokePermission(ctx context.Context, in *permissionInput, body *Revocation) (Permission, error) {
	p, err := a.permissions.revoke(ctx, exchangeOf(ctx).who, in.ID, body.Reason)
	if err != nil {
		return Permission{}, err
	}
	return permissionOf(p, permissionState(p, a.o.Now()), false), nil
}

// check refuses a list that names an approval twice, before any decision is made.
func (as *Answers) check() error {
	seen := make(map[schema.ApprovalID]bool, len(as.Decisions))
	for i := range as.Decisions {
		id := as.Decisions[i].ID
		if seen[id] {
			return schema.Errorf(schema.KindInvalidRequest, "Decision %d repeats the approval of an earlier one; nothing was decided.", i+1)
		}
		seen[id] = true
	}
	return nil
}

// answer returns the decision. Arguments keep the bytes of their member.
func (b *Answer) answer() approval.Answer {
	return approval.Answer{Kind: b.Kind, Reason: b.Reason, Digest: b.Digest, Arguments: b.Arguments.RawMessage, Allow: b.Allow}
}

// object is a JSON object that is passed on unchanged.
type object struct{ json.RawMessage }

// Schema describes it; see [huma.SchemaProvider].
func (object) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeObject} }
