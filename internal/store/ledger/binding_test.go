package ledger_test

import (
	"testing"
	"time"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

func golden() ledger.Binding {
	return ledger.Binding{
		Tenant: "t1", Requester: ledger.Requester{Name: "ann", Owner: "payments"}, Server: "bank", Tool: "pay",
		ToolDefinitionDigest: "sha256:aa", ArgumentsDigest: "sha256:bb", PolicyVersion: "7", Level: 2,
		Deadline: time.Unix(1_800_000_000, 123).UTC(), CallID: "call_1", ApprovalID: "appr_1",
	}
}

func TestBindingDigestIsStable(t *testing.T) {
	b := golden()
	// Made by hand over the documented list; signed decisions stand on it.
	const want = "sha256:b97b5a7922b0dce057e98c8cef5322fc11689746093c89caf2fe68f3636f56a0"
	if got := b.Digest(); got != want {
		t.Errorf("got %s", got)
	}
	b.Deadline = b.Deadline.In(time.FixedZone("x", 3600))
	if got := b.Digest(); got != want {
		t.Errorf("in another time zone: %s", got)
	}
}

func TestEveryFieldChangesTheBindingDigest(t *testing.T) {
	seen := map[string]string{}
	for name, change := range map[string]func(*ledger.Binding){
		"none":       func(*ledger.Binding) {},
		"tenant":     func(b *ledger.Binding) { b.Tenant = "t2" },
		"name":       func(b *ledger.Binding) { b.Requester.Name = "anns" },
		"owner":      func(b *ledger.Binding) { b.Requester.Owner = "" },
		"moved":      func(b *ledger.Binding) { b.Requester = ledger.Requester{Name: "annp", Owner: "ayments"} },
		"server":     func(b *ledger.Binding) { b.Server = "Bank" },
		"tool":       func(b *ledger.Binding) { b.Tool = "pаy" }, // a Cyrillic letter
		"definition": func(b *ledger.Binding) { b.ToolDefinitionDigest = "sha256:ab" },
		"arguments":  func(b *ledger.Binding) { b.ArgumentsDigest = "sha256:ba" },
		"policy":     func(b *ledger.Binding) { b.PolicyVersion = "" },
		"level":      func(b *ledger.Binding) { b.Level = 3 },
		"deadline":   func(b *ledger.Binding) { b.Deadline = b.Deadline.Add(1) },
		"none set":   func(b *ledger.Binding) { b.Deadline = time.Time{} },
		"call":       func(b *ledger.Binding) { b.CallID = "call_2" },
		"approval":   func(b *ledger.Binding) { b.ApprovalID = "appr_2" },
	} {
		b := golden()
		change(&b)
		d := b.Digest()
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[d] = name
	}
}

func TestApprovalIDsAreUniquePerCall(t *testing.T) {
	seen := map[schema.ApprovalID]schema.CallID{}
	for _, call := range []schema.CallID{"call_01", "call_02", "01", "appr_01", "batch:1", "call_", "call_A", "call_a.b", ""} {
		id := ledger.IDFor(call)
		if other, ok := seen[id]; ok {
			t.Errorf("%q and %q have one approval", call, other)
		}
		seen[id] = call
	}
	if got := ledger.IDFor("call_01jabc"); got != "appr_01jabc" {
		t.Error(got)
	}
}
