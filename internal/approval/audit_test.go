package approval_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func tokensOf(r *fixture) *confirm.Tokens { return confirm.New(r.ledger, nil) }

func openAudit(t *testing.T, srv *bustest.Server) *audit.Log {
	t.Helper()
	lines, err := audit.Open(t.Context(), srv.Connect(t, "audit"), audit.Options{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lines.Close)
	return lines
}

func audited(t *testing.T) (*fixture, *audit.Log) {
	t.Helper()
	srv := bustest.Start(t)
	lines := openAudit(t, srv)
	return open(t, srv, nil, func(o *approval.Options) { o.Audit, o.Runner = lines, "door" }), lines
}

// linesOf returns the audit entries of an approval: kind, actor, outcome.
func linesOf(t *testing.T, lines *audit.Log, id schema.ApprovalID) (told []string) {
	t.Helper()
	if err := lines.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, _, err := lines.Read(t.Context(), schema.AllTenants(), audit.Filter{ApprovalID: id}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		told = append(told, strings.TrimSpace(strings.Join([]string{string(r.Kind), r.By, r.Outcome}, " ")))
		if r.CallID != "" && r.ArgumentsDigest == "" {
			t.Errorf("a line without the digest of the arguments: %+v", r)
		}
	}
	return told
}

func TestEveryStepHasItsAuditLine(t *testing.T) {
	r, lines := audited(t)
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	decide := func(id schema.ApprovalID, answer approval.Answer, who schema.Principal) {
		t.Helper()
		_, err := r.desk.Decide(ctx, id, answer, who, "web")
		must(err)
	}
	is := func(id schema.ApprovalID, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, linesOf(t, lines, id)); diff != "" {
			t.Error(diff)
		}
	}

	confirmed := r.hold(byCaller())
	a, err := r.desk.Confirm(ctx, confirmed.Token, true, agent, "x", "door")
	must(err)
	_, err = r.desk.Finish(ctx, schema.DefaultTenant, a.ID, &schema.Result{Body: []byte(`{"secret":"in the result"}`)}, nil)
	must(err)
	is(a.ID, "held agent-key", "decided agent-key approve", "spent agent-key", "ran door", "ended  succeeded")

	rejected := r.hold(byCaller())
	_, err = r.desk.Confirm(ctx, rejected.Token, false, agent, "x", "door")
	must(err)
	is(rejected.Approval.ID, "held agent-key", "decided agent-key deny", "spent agent-key")

	edited := r.hold(byOperators(2)).Approval.ID
	decide(edited, approval.Answer{Kind: ledger.Extend}, ben)
	decide(edited, approval.Answer{Kind: ledger.Edit, Arguments: []byte(`{"secret":"edited"}`), Reason: "too much of a secret"}, ben)
	decide(edited, approval.Answer{Kind: ledger.Approve, Digest: schema.Digest([]byte(`{"secret":"edited"}`))}, cleo)
	_, err = r.desk.Claim(ctx, schema.DefaultTenant, edited, "door")
	must(err)
	_, err = r.desk.Finish(ctx, schema.DefaultTenant, edited, nil, schema.Errorf(schema.KindServerFailed, "It is away."))
	must(err)
	is(edited, "held agent-key", "extended ben extend", "edited ben edit", "decided cleo approve", "ran door", "ended  failed")

	revoked := r.hold(byOperators(1)).Approval.ID
	decide(revoked, approval.Answer{Kind: ledger.Approve, Digest: schema.Digest([]byte(arguments))}, ben)
	decide(revoked, approval.Answer{Kind: ledger.Revoke}, cleo)
	is(revoked, "held agent-key", "decided ben approve", "revoked cleo revoke")

	canceled := r.hold(byOperators(1)).Approval
	_, err = r.desk.Cancel(ctx, canceled.CallID, agent)
	must(err)
	is(canceled.ID, "held agent-key", "canceled agent-key canceled")

	rule := byOperators(1)
	rule.EscalateTo = []string{"bosses"}
	silent := r.hold(rule).Approval.ID
	for range 2 {
		r.clock.advance(6 * time.Minute)
		_, err = r.desk.Reconcile(ctx, func(string) bool { return true })
		must(err)
	}
	is(silent, "held agent-key", "escalated", "expired  expired")

	all, _, err := lines.Read(ctx, schema.AllTenants(), audit.Filter{Limit: 1000}, "")
	must(err)
	for _, l := range all {
		if l.Repaired {
			t.Errorf("it was put back: %+v", l)
		}
		if l.Kind == audit.Held && (l.PolicyVersion != "test" || l.Level != 2 || l.BindingDigest == "" || l.DefinitionDigest == "" || l.Owner != "ana") {
			t.Errorf("held: %+v", l)
		}
		if l.Kind == audit.Edited && (l.ArgumentsDigest != schema.Digest([]byte(`{"secret":"edited"}`)) || l.ReasonDigest != schema.Digest([]byte("too much of a secret")) || l.Channel != "web") {
			t.Errorf("edited: %+v", l)
		}
		if l.Kind == audit.Ended && (l.Outcome == "succeeded") != (l.ResultDigest == schema.Digest([]byte(`{"secret":"in the result"}`))) {
			t.Errorf("ended: %+v", l)
		}
	}
	raw := dump(t, lines)
	for _, word := range []string{"9007199254740993", "secret", "amount"} {
		if strings.Contains(raw, word) {
			t.Errorf("%q is in the audit record", word)
		}
	}
	r.clock.advance(time.Minute)
	if n, err := r.desk.Repair(ctx, time.Hour); n != 0 || err != nil {
		t.Errorf("%d lines were missing, %v", n, err)
	}
	if report, err := lines.Verify(ctx); err != nil || !report.OK() {
		t.Errorf("%+v, %v", report, err)
	}
}

// dump returns the whole audit record as text.
func dump(t *testing.T, lines *audit.Log) string {
	t.Helper()
	var all strings.Builder
	if err := lines.Since(t.Context(), schema.AllTenants(), time.Time{}, func(r *audit.Record) bool {
		all.WriteString(strings.Join([]string{r.Reason, r.Outcome, r.Error, r.Rule, r.By, r.Owner, r.Channel, r.Attempt, r.ReasonDigest, string(r.Worker), "\n"}, " "))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func TestAuditEntriesLostInACrashAreRestored(t *testing.T) {
	srv := bustest.Start(t)
	lines := openAudit(t, srv)
	whole := open(t, srv, nil, func(o *approval.Options) { o.Audit = lines })
	doomed := open(t, srv, whole.clock) // writes no entries
	ctx := context.Background()
	var ids []schema.ApprovalID
	for i, r := range []*fixture{whole, doomed, whole} {
		h := r.hold(byCaller())
		next := doomed
		if i == 2 {
			next = whole
		}
		a, err := next.desk.Confirm(ctx, h.Token, true, agent, "x", "door")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := next.desk.Finish(ctx, schema.DefaultTenant, a.ID, nil, errors.New("broken")); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, a.ID)
	}
	want := linesOf(t, lines, ids[2])
	if n, err := whole.desk.Repair(ctx, time.Hour); n != 0 || err != nil {
		t.Fatalf("what has just happened was taken for missing: %d, %v", n, err)
	}
	whole.clock.advance(time.Minute)
	polltest.Until(t, "it has seen the changes of the other one", func() bool {
		return len(whole.ledger.Where(schema.AllTenants(), func(a *ledger.Approval) bool { return a.State.Ended() })) == len(ids)
	})
	if n, err := whole.desk.Repair(ctx, time.Hour); n != 4+5 || err != nil {
		t.Fatalf("%d lines were put back, %v", n, err)
	}
	for _, id := range ids[:2] {
		got := linesOf(t, lines, id)
		if len(got) != len(want) {
			t.Errorf("%v", got)
		}
		for _, line := range want {
			if !strings.Contains(strings.Join(got, "\n")+"\n", line+"\n") {
				t.Errorf("%q is missing in %q", line, got)
			}
		}
	}
	repaired, _, err := lines.Read(ctx, schema.AllTenants(), audit.Filter{ApprovalID: ids[0]}, "")
	if err != nil || len(repaired) != 5 || repaired[0].Repaired || !repaired[1].Repaired {
		t.Errorf("%+v, %v", repaired, err)
	}
	if n, err := whole.desk.Repair(ctx, time.Hour); n != 0 || err != nil {
		t.Errorf("and %d again, %v", n, err)
	}
}

func TestFailingAuditRecordStopsNoCall(t *testing.T) {
	srv := bustest.Start(t)
	lines := openAudit(t, srv)
	r := open(t, srv, nil, func(o *approval.Options) { o.Audit = lines })
	lines.Close()
	h := r.hold(byCaller())
	if a, err := r.desk.Confirm(context.Background(), h.Token, true, agent, "x", "door"); err != nil || a.State != ledger.Running {
		t.Errorf("%+v, %v", a, err)
	}
}
