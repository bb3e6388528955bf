package frontdoor

import (
	"context"
	"strings"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/pkg/schema"
)

// recordAct writes an operator action to the audit record. For an action that is about to begin,
// it returns nil only after the record is stored. So no action runs without a record, even if the
// process is killed.
func (d *FrontDoor) recordAct(ctx context.Context, a *httpapi.Act) error {
	ctx, cancel := context.WithTimeout(ctx, auditWithin)
	defer cancel()
	e := audit.Entry{
		Kind: audit.ActEnded, By: a.By.Name, Owner: a.By.Owner, Channel: "api", Operation: a.Operation, Path: a.Path, RequestID: a.RequestID, Status: a.Status,
		Tenant: a.By.Tenant, Credential: credentialOf(&a.By), Before: a.Before, After: a.After,
	}
	switch {
	case a.Status == 0:
		e.Kind = audit.ActBegun
	case a.Status < 400:
		e.Outcome = "succeeded"
	default:
		e.Outcome = "refused"
	}
	log := d.stores.approvals.Audit
	err := log.Append(ctx, e)
	if err == nil && a.Status == 0 {
		err = log.Sync(ctx)
	}
	if err == nil {
		return nil
	}
	d.o.Log.Error("an action of an operator could not be written to the audit log", "operation", a.Operation, "by", a.By.Name, "id", a.RequestID, "error", err)
	return schema.Errorf(schema.KindUnavailable, "The audit record cannot be written, so nothing was changed. Try again later.").RetryableAfter(0)
}

// credentialOf describes the credential that authenticated a principal, without a secret.
func credentialOf(p *schema.Principal) string {
	if p.Grant == nil {
		return "configuration " + p.Name
	}
	return strings.TrimSpace(strings.ReplaceAll(p.Grant.Identity(), "\x00", " "))
}
