package deploy_test

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/approver/oidc/oidctest"
)

func checkKeys(t *testing.T, o *guideFabric) {
	if status, body := ask(t, "GET", o.approver+"/approvals", "", "X-API-Key: nobody"); status != http.StatusUnauthorized {
		t.Errorf("%d %s", status, body)
	}
	nobody := o.browses(t, "")
	if status, page := nobody.get("/"); !strings.Contains(page, `action="/sign-in"`) {
		t.Errorf("%d %s", status, page)
	}
	if status, page := o.browses(t, "ann").get("/"); status != http.StatusOK || !strings.Contains(page, "ann") {
		t.Errorf("%d %s", status, page)
	}
}

func checkProvider(t *testing.T, o *guideFabric) {
	ada := oidctest.Claims{"email": "ada@example.com", "email_verified": true, "groups": []string{"platform-oncall"}}
	o.provider.SignsIn(ada)
	b := o.browses(t, "")
	b.get("/sign-in/provider") // follows the redirect back
	if status, page := b.get("/"); status != http.StatusOK || !strings.Contains(page, "ada@example.com") {
		t.Fatalf("ada is not signed in: %d %s", status, page)
	}
	mine, others := o.asked(t, "ada-agent", "echo", `{"message":"mine"}`), o.asked(t, "agent", "echo", `{"message":"of others"}`)
	for _, h := range []held{mine, others} {
		o.view(t, "ann", h.Approval, nil)
	}
	if _, page := b.get("/a/" + mine.Approval); strings.Contains(page, `/approve"`) || !strings.Contains(page, "You requested this call") {
		t.Errorf("ada may approve what her agent asks for: %s", page)
	}
	_, page := b.get("/a/" + others.Approval)
	b.submit(page, "/a/"+others.Approval+"/approve", nil)
	o.ended(t, "agent", others, "succeeded")
	// Groups that are not in group_map are ignored, and other domains are refused.
	o.provider.SignsIn(oidctest.Claims{"email": "eve@elsewhere.example", "email_verified": true, "groups": []string{"platform-oncall"}})
	c := o.browses(t, "")
	c.get("/sign-in/provider")
	if _, page := c.get("/"); strings.Contains(page, "eve@elsewhere.example</span>") || !strings.Contains(page, "Sign in") {
		t.Errorf("somebody of another domain is signed in: %s", page)
	}
	o.decides(t, "ann", mine.Approval, "deny", "", http.StatusOK)
}

func checkFreshSignIns(t *testing.T, o *guideFabric) {
	h := o.asked(t, "agent", "add", `{"a":5000,"b":1}`)
	if status, body := o.decide(t, "fay", h.Approval, "approve", ""); status == http.StatusOK {
		t.Errorf("a key with the API counts as a fresh sign-in: %s", body)
	}
	for i, who := range []string{"fay", "gus"} {
		b := o.browses(t, who) // a recent sign-in
		_, page := b.get("/a/" + h.Approval)
		b.submit(page, "/a/"+h.Approval+"/approve", nil)
		if i == 0 {
			o.view(t, "gus", h.Approval, func(s *seen) bool { return s.State == "pending" && s.ApprovalCount == 1 })
		}
	}
	o.ended(t, "agent", h, "succeeded")
	ann := o.browses(t, "ann")
	_, page := ann.get("/")
	ann.submit(page, "/sign-out", nil)
	if _, page := ann.get("/"); !strings.Contains(page, `action="/sign-in"`) {
		t.Error("a session goes on after a sign-out")
	}
}

func checkAPI(t *testing.T, o *guideFabric) {
	if status, body := ask(t, "GET", o.approver+"/openapi.json", "", key("ann")); status != http.StatusOK || !strings.Contains(body, "/decisions") {
		t.Errorf("/openapi.json: %d", status)
	}
	h := o.asked(t, "agent", "echo", `{"message":"by the API"}`)
	s := o.view(t, "ann", h.Approval, nil)
	printed := strings.NewReplacer("appr_…", h.Approval, "sha256:…", s.Digest, "https://approve.example.com", o.approver).Replace(o.block(t, "sh", "curl"))
	if strings.Contains(printed, "…") {
		t.Fatalf("the command of the page has more to fill in: %s", printed)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", printed)
	cmd.Env = environment("KEY=ann-key")
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), `"status":200`) {
		t.Errorf("%s\n%v %s", printed, err, out)
	}
	o.ended(t, "agent", h, "succeeded")
	// The command line works in the same way.
	h = o.asked(t, "agent", "echo", `{"message":"by the command line"}`)
	o.view(t, "ann", h.Approval, nil)
	cmd = exec.CommandContext(t.Context(), built(t, "callyard"), "approve", h.Approval, "--yes")
	cmd.Env = environment("CALLYARD_APPROVER_URL="+o.approver, "CALLYARD_KEY=ann-key")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("callyard approve: %v %s", err, out)
	}
	o.ended(t, "agent", h, "succeeded")
}

func checkKilledApprover(t *testing.T, o *guideFabric) {
	h := o.asked(t, "agent", "echo", `{"message":"while the approver is gone"}`)
	o.view(t, "ann", h.Approval, nil)
	ann := o.browses(t, "ann")
	old := o.processes[len(o.processes)-1]
	if err := old.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-old.Done
	o.processes = o.processes[:len(o.processes)-1]
	o.again("approver")
	// Waiting calls remain; people sign in again.
	if _, page := ann.get("/"); !strings.Contains(page, `action="/sign-in"`) {
		t.Error("a session outlives its approver")
	}
	o.decides(t, "ann", h.Approval, "approve", "", http.StatusOK)
	o.ended(t, "agent", h, "succeeded")
}
