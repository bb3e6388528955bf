package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/approver/oidc/oidctest"
	"github.com/callyard/callyard/internal/approver/web"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/pkg/schema"
)

// TestApprovalsOfAnotherTenantAreNotFound sends requests as a person of another tenant who
// is in the group that decides, and in the observer group.
func TestApprovalsOfAnotherTenantAreNotFound(t *testing.T) {
	f := open(t, []authn.Key{
		{Name: "rita", Groups: []string{"ops", "auditors"}, Tenant: "red"},
		{Name: "bo", Groups: []string{"ops", "auditors"}, Tenant: "blue"},
		{Name: "plain", Groups: []string{"ops", "auditors"}},
	}, nil)
	red := f.hold(`{"target":"x"}`, schema.Principal{Name: "agent", Tenant: "red"}, nil)
	first := f.hold(`{"target":"x"}`, schema.Principal{Name: "old"}, nil)
	allowed := decision("approve", red.Binding.ArgumentsDigest, "")
	never := schema.ApprovalID("appr_" + strings.Repeat("0", 26))
	alike := func(name, method, path, body string, foreign schema.ApprovalID) {
		t.Helper()
		ask := func(id schema.ApprovalID) (int, string) {
			a := f.api(name, method, strings.ReplaceAll(path, "ID", string(id)), strings.ReplaceAll(body, "ID", string(id)))
			return a.status, strings.ReplaceAll(a.body, string(id), "ID")
		}
		status, got := ask(foreign)
		wanted, want := ask(never)
		if status != wanted || got != want || !strings.Contains(got, "not-found") {
			t.Errorf("%s as %s: %d %s; an unknown id has %d %s", method+" "+path, name, status, got, wanted, want)
		}
	}
	for name, foreign := range map[string]schema.ApprovalID{"bo": red.ID, "plain": red.ID, "rita": first.ID} {
		alike(name, "GET", "/approvals/ID", "", foreign)
		alike(name, "POST", "/approvals/ID/decisions", allowed, foreign)
		alike(name, "POST", "/decisions", `{"decisions":[{"id":"ID",`+strings.TrimPrefix(allowed, "{")+`]}`, foreign)
	}
	for name, own := range map[string]schema.ApprovalID{"bo": "", "plain": first.ID, "rita": red.ID} {
		var list struct {
			Approvals []struct{ ID schema.ApprovalID }
		}
		decode(t, f.api(name, "GET", "/approvals", ""), &list)
		if own == "" && len(list.Approvals) != 0 || own != "" && (len(list.Approvals) != 1 || list.Approvals[0].ID != own) {
			t.Errorf("%s sees %v", name, list.Approvals)
		}
	}
	// A person who decides over another channel, such as Slack, is refused as well.
	who := schema.Principal{Name: "bo", Groups: []string{"ops"}, Tenant: "blue"}
	if _, err := f.desk.Decide(t.Context(), red.ID, approval.Answer{Kind: ledger.Deny}, who, "slack"); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("the desk says %v", err)
	}
	if is := f.state(red.ID); is.State != ledger.Pending || len(is.Decisions) != 0 {
		t.Errorf("%+v", is)
	}
	if got := f.api("rita", "POST", "/approvals/"+string(red.ID)+"/decisions", allowed); got.status != http.StatusOK {
		t.Errorf("its own tenant: %d %s", got.status, got.body)
	}
}

func TestSignInOfAnUnconfiguredTenantIsRefused(t *testing.T) {
	c := openSignInFabricWithClaim(t, people(), "team", func(o *web.Options) { o.Tenants = tenants.New(settings.Tenants{"red": {Servers: []string{"*"}}}) })
	for tenant, status := range map[string]int{"red": http.StatusOK, "gone": http.StatusUnauthorized} {
		c.idp.SignsIn(oidctest.Claims{"email": "ada@x.example", "email_verified": true, "groups": []string{"ops"}, "team": tenant})
		got := c.comeIn(c.browser())
		if got.status != status || (session(got) != "") != (status == http.StatusOK) {
			t.Errorf("%s: %d, session %q: %s", tenant, got.status, session(got), got.body)
		}
		if status != http.StatusOK && !strings.Contains(got.body, "The tenant of this credential is not configured.") {
			t.Errorf("%s is told: %s", tenant, got.body)
		}
	}
}
