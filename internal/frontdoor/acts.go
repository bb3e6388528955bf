package frontdoor

import (
	"context"
	"strings"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/pkg/schema"
)

// recordAct writes an operator action to the audit record; see [audit.Log.Act].
func (d *FrontDoor) recordAct(ctx context.Context, a *httpapi.Act) error {
	return d.stores.approvals.Audit.Act(ctx, audit.Entry{
		By: a.By.Name, Owner: a.By.Owner, Channel: "api", Operation: a.Operation, Path: a.Path, RequestID: a.RequestID, Status: a.Status,
		Tenant: a.By.Tenant, Credential: credentialOf(&a.By), Before: a.Before, After: a.After,
	})
}

// credentialOf describes the credential that authenticated a principal, without a secret.
func credentialOf(p *schema.Principal) string {
	if p.Grant == nil {
		return "configuration " + p.Name
	}
	return strings.TrimSpace(strings.ReplaceAll(p.Grant.Identity(), "\x00", " "))
}
