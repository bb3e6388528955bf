package auditlog

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/pkg/schema"
)

// verifyWithin is the approximate time that one request verifies. The next request continues.
const verifyWithin = 500 * time.Millisecond

// handlers are the operations on the audit record.
type handlers struct {
	reader   *audit.Reader // nil if there is none
	verifier *audit.Verifier
}

// Register registers the operations on the audit record; reader may be nil.
func Register(d *httpapi.Document, reader *audit.Reader) {
	h := &handlers{reader: reader}
	if reader != nil {
		h.verifier = audit.NewVerifier(reader)
	}
	httpapi.HandleValue(d, opList(), "A page of records.", exampleList(), h.list)
	httpapi.Get(d, opVerify(), h.verify)
}

func errNoAuditLog() error {
	return schema.Errorf(schema.KindUnavailable, "This front door has no audit log.")
}

// list serves GET /audit.
func (h *handlers) list(x *httpapi.Exchange, r *http.Request) (list AuditRecordList, err error) {
	if h.reader == nil {
		return list, errNoAuditLog()
	}
	q := x.Query
	f := audit.Filter{
		CallID: schema.CallID(q.Get("call")), ApprovalID: schema.ApprovalID(q.Get("approval")), By: q.Get("by"), Server: schema.ServerID(q.Get("server")),
		Tool: q.Get("tool"), Operation: q.Get("operation"), Since: httpapi.Time(q, "since"), Until: httpapi.Time(q, "until"), Limit: httpapi.Number(q, "limit", httpapi.PageLimit),
	}
	of, asked := scope.TenantsOf(&x.Principal, scope.Admin, scope.ReadAllCalls), schema.TenantID(q.Get("tenant"))
	if asked != "" {
		if !of.Include(asked) {
			return AuditRecordList{Records: []AuditRecord{}}, nil // same answer as for a tenant that does not exist
		}
		of = schema.OnlyTenant(asked)
	}
	for _, kind := range q["kind"] {
		f.Kinds = append(f.Kinds, audit.Kind(kind))
	}
	found, next, err := h.reader.Newest(r.Context(), of, f, q.Get("cursor"))
	if err != nil {
		return list, err
	}
	list = AuditRecordList{Records: make([]AuditRecord, 0, len(found)), Next: next}
	for i := range found {
		list.Records = append(list.Records, recordOf(&found[i]))
	}
	return list, nil
}

// verify serves GET /audit/verification.
func (h *handlers) verify(ctx context.Context, _ *httpapi.NoInput) (answer AuditVerification, err error) {
	if h.verifier == nil {
		return answer, errNoAuditLog()
	}
	v, err := h.verifier.Verify(ctx, verifyWithin)
	if err != nil {
		return answer, schema.Errorf(schema.KindUnavailable, "The audit log cannot be read; check that NATS is running. (%w)", err)
	}
	return verificationOf(v, time.Now()), nil
}

// kinds returns the schema of all kinds of records, for the parameter.
func kinds() *huma.Schema {
	return openapi.Words("asked", "held", "decided", "edited", "extended", "revoked", "expired", "spent", "ran", "ended", "escalated", "restarted", "canceled", "definition-accepted", "act-begun", "act-ended", "permission-given", "permission-used", "permission-revoked",
		"grant-given", "grant-denied", "grant-redeemed", "grant-renewed", "grant-ended")
}

func opList() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/audit", "list-audit", openapi.TagAudit, "List audit records",
		"The records of requests, decisions and runs of calls, and of the actions of operators, newest first. Each record has the digest of the previous record in its chain, and digests instead of arguments, results and reasons. "+
			"Only the default tenant sees the records of other tenants. A page can be short or empty and still have a next cursor.")
	text := openapi.String
	op.Parameters = []*huma.Param{
		openapi.QueryParam("kind", "Only records of these kinds.", &huma.Schema{Type: huma.TypeArray, Items: kinds()}), openapi.QueryParam("operation", "Only actions of operators with this operation, such as switch-tool.", text()),
		openapi.QueryParam("by", "Only actions of this principal or person.", text()), openapi.QueryParam("tenant", "Only records of this tenant.", text()),
		openapi.QueryParam("call", "Only records of this call.", text()), openapi.QueryParam("approval", "Only records of this approval.", text()),
		openapi.QueryParam("server", "Only records of this server.", text()), openapi.QueryParam("tool", "Only records of this tool.", text()),
		openapi.QueryParam("since", "Only records of this time or later.", openapi.Time()), openapi.QueryParam("until", "Only records from before this time.", openapi.Time()),
		openapi.QueryParam("limit", "The maximum number of records on a page; the default is 100.", openapi.Integers(1, httpapi.MaxPageLimit)), openapi.QueryParam("cursor", "The member next of the previous page.", text()),
	}
	return op
}

func opVerify() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/audit/verification", "verify-audit", openapi.TagAudit, "Verify the audit log",
		"Checks whether records were changed, removed or inserted, as `callyard audit verify` does. A request verifies for about half a second, and the next request continues from there; repeat it until complete is true. Only the default tenant may use it.")
	return openapi.Answers(op, "The progress of the verification, and the faults that it found.", map[string]any{
		"intact": true, "complete": true, "heads_compared": true, "records": 412, "writers": 3, "fault_count": 0, "began_at": "2026-01-02T03:04:05Z", "checked_at": "2026-01-02T03:04:06Z",
	})
}

func exampleList() map[string]any {
	return map[string]any{"records": []any{map[string]any{
		"writer": "frontdoor_06b2t8m3c0w3v2q5n7k9a1d4fz", "seq": 17, "prev": "9f2c", "hash": "71ac", "kind": "act-ended", "at": "2026-01-02T03:04:05Z", "by": "ops", "channel": "api",
		"operation": "switch-tool", "path": "/servers/files/tools/write_file", "status": 200, "outcome": "succeeded",
	}}}
}
