package console

import (
	"net/http"
	"strings"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	auditPath = Root + "/audit"
	// auditRows is the number of records per page.
	auditRows = 50
	// verifyEvery is the lifetime of a cached verification of the hash chains.
	verifyEvery = 10 * time.Second
)

// actGroup is an option of the filter: a set of related record kinds.
type actGroup struct {
	Name, Label string
	kinds       []callyard.ListAuditParamsKind
}

var actGroups = []actGroup{
	{"operators", "Acts of operators", []callyard.ListAuditParamsKind{"act-begun", "act-ended", "definition-accepted"}},
	{"decisions", "Decisions of people", []callyard.ListAuditParamsKind{"decided", "edited", "extended", "revoked", "permission-given", "permission-revoked"}},
	{"programs", "Access of programs", []callyard.ListAuditParamsKind{"grant-given", "grant-denied", "grant-redeemed", "grant-renewed", "grant-ended"}},
	{"held", "Held calls", []callyard.ListAuditParamsKind{"asked", "held", "escalated", "restarted", "expired", "canceled", "spent", "permission-used"}},
	{"runs", "Runs and outcomes", []callyard.ListAuditParamsKind{"ran", "ended"}},
}

type auditPage struct {
	Act, Operation, By, Tenant, Call, Since, Until string
	Groups                                         []actGroup
	Records                                        []callyard.AuditRecord
	Older                                          string // the address of the next page
	Refusal                                        string
	Chain                                          *callyard.AuditVerification // nil if not known; ChainUnknown has the reason
	ChainUnknown                                   string
}

// audit serves the audit records, newest first.
func (c *Console) audit(w http.ResponseWriter, r *http.Request, v Visit) error {
	q := r.URL.Query()
	of := func(name string) string { return strings.TrimSpace(q.Get(name)) }
	page := auditPage{Act: q.Get("act"), Operation: of("operation"), By: of("by"), Tenant: of("tenant"), Call: of("call"), Since: q.Get("since"), Until: q.Get("until"), Groups: actGroups}
	limit := auditRows
	params := callyard.ListAuditParams{Operation: optional(page.Operation), By: optional(page.By), Tenant: optional(page.Tenant), Call: optional(page.Call), Cursor: optional(q.Get("cursor")), Limit: &limit}
	for _, g := range actGroups {
		if g.Name == page.Act {
			params.Kind = g.kinds
		}
	}
	params.Since, params.Until, page.Refusal = periodOf(page.Since, page.Until)
	list, err := get[callyard.AuditRecordList](r.Context(), c, v, with(api.ListAudit, &params))
	if err != nil {
		return c.orKey(w, r, err)
	}
	page.Records = list.Records
	page.Older = older(auditPath, q, list.Next)
	chain, err := cachedFor(c.cache, v, "audit chain", verifyEvery, func() (callyard.AuditVerification, error) {
		return get[callyard.AuditVerification](r.Context(), c, v, with0(api.VerifyAudit))
	})
	switch {
	case err == nil:
		page.Chain = &chain
	default:
		page.ChainUnknown = schema.AsError(err).Detail
	}
	return c.render(w, v, http.StatusOK, "audit", view{Title: "Audit", Here: auditPath, Page: page})
}
