package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestApprovalRoundTrips(t *testing.T) {
	l := start(t)
	a := question()
	a.Definition = []byte("{ \"name\" : \"pay\", \"x\": \"<&>\" }")
	args := []byte(`{ "amount": 9007199254740993, "to":"<ann>" }`)
	if _, err := l.Create(t.Context(), a, args); err != nil {
		t.Fatal(err)
	}
	got, _, err := l.Get(t.Context(), schema.AllTenants(), a.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := a.Clone()
	want.Definition = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if b, err := l.Arguments(t.Context(), schema.DefaultTenant, a.ID); err != nil || !bytes.Equal(b, args) {
		t.Errorf("arguments %s, %v", b, err)
	}
	if b, err := l.Definition(t.Context(), schema.DefaultTenant, a.ID); err != nil || !bytes.Equal(b, a.Definition) {
		t.Errorf("definition %s, %v", b, err)
	}
	byCall, _, err := l.ByCall(t.Context(), schema.OnlyTenant(""), a.CallID)
	if err != nil || byCall.ID != a.ID {
		t.Errorf("by call: %v, %v", byCall, err)
	}
	for _, of := range []schema.Tenants{{}, schema.OnlyTenant("red")} {
		if got, _, err := l.ByCall(t.Context(), of, a.CallID); got != nil || schema.KindOf(err) != schema.KindNotFound {
			t.Errorf("of %+v: %v, %v", of, got, err)
		}
		if got, _ := l.List(of, ledger.Filter{}, ledger.Cursor{}); len(got) != 0 {
			t.Errorf("of %+v: %d are listed", of, len(got))
		}
	}
	if a.Binding.ArgumentsDigest != schema.Digest(args) || a.BindingDigest != a.Binding.Digest() {
		t.Error("the digests were not filled in")
	}
}

func TestPayloadsOfAnySizeRoundTrip(t *testing.T) {
	if _, err := start(t).Arguments(t.Context(), schema.DefaultTenant, "appr_none"); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("an approval that is not there: %v", err)
	}
	for name, l := range map[string]*ledger.Ledger{
		"8 MiB messages": start(t), "1 MiB messages": open(t, bustest.StartProcess(t).Connect(t, "test"), ledger.Options{}),
	} {
		for _, n := range []int{0, 1, 1 << 10, 256 << 10, 256<<10 + 1, 1<<20 - 3000, 1 << 20, 9 << 20} {
			a, args, edited, result := question(), noise(n), noise(n), noise(n)
			a.Definition = noise(700)
			if _, err := l.Create(t.Context(), a, args); err != nil {
				t.Fatalf("%s, %d: %v", name, n, err)
			}
			d, err := l.PutEdited(t.Context(), schema.DefaultTenant, a.ID, edited)
			if err != nil {
				t.Fatal(err)
			}
			same := func(what string, want []byte, read func(context.Context, schema.TenantID, schema.ApprovalID) ([]byte, error)) {
				t.Helper()
				if got, err := read(t.Context(), a.Binding.Tenant, a.ID); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s, %d: %s differ: %d bytes, %v", name, n, what, len(got), err)
				}
			}
			same("arguments before the edit counts", args, l.Arguments)
			if _, err := l.Change(t.Context(), schema.DefaultTenant, a.ID, func(a *ledger.Approval) error {
				a.Edited = &ledger.Edited{By: "bob", ArgumentsDigest: d, Size: int64(len(edited)), At: time.Now()}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			same("edited arguments", edited, l.Arguments)
			same("arguments that were asked for", args, l.Asked)
			same("definition", a.Definition, l.Definition)
			if _, err := l.Result(t.Context(), a); schema.KindOf(err) != schema.KindNotFound {
				t.Errorf("a result before there is one: %v", err)
			}
			// Whoever has seen the end is not told that there is none, whatever a server that is behind says.
			ahead := *a
			ahead.State, ahead.ResultDigest = ledger.Succeeded, schema.Digest(result)
			if _, err := l.Result(t.Context(), &ahead); schema.KindOf(err) != schema.KindUnavailable || !schema.AsError(err).Retryable {
				t.Errorf("a result that is not there yet: %v", err)
			}
			run(t, l, a.ID)
			ended, err := l.End(t.Context(), schema.DefaultTenant, a.ID, result, to(ledger.Succeeded))
			if err != nil || ended.ResultDigest != schema.Digest(result) {
				t.Fatal(err)
			}
			same("result", result, func(ctx context.Context, _ schema.TenantID, _ schema.ApprovalID) ([]byte, error) {
				return l.Result(ctx, ended)
			})
		}
	}
}

func run(t *testing.T, l *ledger.Ledger, id schema.ApprovalID) {
	t.Helper()
	if _, err := l.Change(t.Context(), schema.DefaultTenant, id, to(ledger.Running)); err != nil {
		t.Fatal(err)
	}
}

func TestApprovalThatContradictsItsBindingIsRefused(t *testing.T) {
	l := start(t)
	for name, spoil := range map[string]func(*ledger.Approval){
		"arguments":     func(a *ledger.Approval) { a.Binding.ArgumentsDigest = schema.Digest([]byte("other")) },
		"definition":    func(a *ledger.Approval) { a.Definition, a.Binding.ToolDefinitionDigest = []byte("{}"), "sha256:00" },
		"call":          func(a *ledger.Approval) { a.Binding.CallID = schema.NewCallID() },
		"approval":      func(a *ledger.Approval) { a.Binding.ApprovalID = "appr_other" },
		"id":            func(a *ledger.Approval) { a.ID = "appr_other" },
		"digest":        func(a *ledger.Approval) { a.BindingDigest = "sha256:00" },
		"state":         func(a *ledger.Approval) { a.State = ledger.Approved },
		"no call":       func(a *ledger.Approval) { a.CallID = "" },
		"never expires": func(a *ledger.Approval) { a.Expires = time.Time{} },
	} {
		a := question()
		spoil(a)
		if _, err := l.Create(t.Context(), a, []byte("{}")); schema.KindOf(err) != schema.KindInternal {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(pending(l, schema.AllTenants())); n != 0 {
		t.Errorf("%d were stored", n)
	}
}

func TestCallHasAtMostOneApproval(t *testing.T) {
	l := start(t)
	a := create(t, l, "{}")
	again := question()
	again.CallID = a.CallID
	if _, err := l.Create(t.Context(), again, []byte(`{"x":1}`)); schema.KindOf(err) != schema.KindConflict {
		t.Error(err)
	}
	if args, err := l.Arguments(t.Context(), schema.DefaultTenant, a.ID); err != nil || string(args) != "{}" {
		t.Errorf("%s, %v", args, err)
	}
}

func TestConcurrentRunnersRunAnApprovalOnce(t *testing.T) {
	s := bustest.Start(t)
	ledgers := []*ledger.Ledger{open(t, s.Connect(t, "a"), ledger.Options{}), open(t, s.Connect(t, "b"), ledger.Options{})}
	for range 20 {
		a := create(t, ledgers[0], "{}")
		var won, refused atomic.Int32
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				_, err := ledgers[i%2].Change(t.Context(), schema.DefaultTenant, a.ID, func(a *ledger.Approval) error {
					if a.State != ledger.Pending {
						return schema.Errorf(schema.KindConflict, "It is %s.", a.State)
					}
					return to(ledger.Running)(a)
				})
				switch schema.KindOf(err) {
				case "":
					won.Add(1)
				case schema.KindConflict:
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 || refused.Load() != 49 {
			t.Fatalf("%d ran it, %d were refused", won.Load(), refused.Load())
		}
	}
}

func TestConcurrentDecisionsAreAllKept(t *testing.T) {
	s := bustest.Start(t)
	ledgers := []*ledger.Ledger{open(t, s.Connect(t, "a"), ledger.Options{}), open(t, s.Connect(t, "b"), ledger.Options{})}
	a := create(t, ledgers[0], "{}")
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			if _, err := ledgers[i%2].Change(t.Context(), schema.DefaultTenant, a.ID, func(a *ledger.Approval) error {
				a.Decisions = append(a.Decisions, ledger.Decision{By: fmt.Sprint(i), Kind: ledger.Approve, At: time.Now(), Groups: []string{"ops"}})
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, _, err := ledgers[1].Get(t.Context(), schema.AllTenants(), a.ID)
	if err != nil || len(got.Decisions) != 30 {
		t.Errorf("%d decisions, %v", len(got.Decisions), err)
	}
}

func TestStaleViewDoesNotRefuseAllowedChanges(t *testing.T) {
	s := bustest.Start(t)
	one, other := open(t, s.Connect(t, "a"), ledger.Options{}), open(t, s.Connect(t, "b"), ledger.Options{})
	for range 50 { // often enough that the view is behind in some of them
		a := create(t, one, "{}")
		if _, err := one.Change(t.Context(), schema.DefaultTenant, a.ID, to(ledger.Approved)); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Change(t.Context(), schema.DefaultTenant, a.ID, func(a *ledger.Approval) error {
			if a.State != ledger.Approved {
				return errors.New("not approved")
			}
			return to(ledger.Running)(a)
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStatesMoveForwardOnly(t *testing.T) {
	// Every pair; what is not listed is refused.
	want := map[ledger.State][]ledger.State{
		ledger.Pending:  {ledger.Pending, ledger.Approved, ledger.Denied, ledger.Expired, ledger.Revoked, ledger.Canceled, ledger.Running},
		ledger.Approved: {ledger.Approved, ledger.Denied, ledger.Expired, ledger.Revoked, ledger.Canceled, ledger.Running},
		ledger.Running:  {ledger.Running, ledger.Succeeded, ledger.Failed, ledger.Unknown, ledger.Canceled},
		ledger.Unknown:  {ledger.Succeeded, ledger.Failed},
	}
	way := map[ledger.State][]ledger.State{
		ledger.Pending: nil, ledger.Approved: {ledger.Approved}, ledger.Denied: {ledger.Denied}, ledger.Expired: {ledger.Expired},
		ledger.Revoked: {ledger.Revoked}, ledger.Canceled: {ledger.Canceled}, ledger.Running: {ledger.Running},
		ledger.Succeeded: {ledger.Running, ledger.Succeeded}, ledger.Failed: {ledger.Running, ledger.Failed}, ledger.Unknown: {ledger.Running, ledger.Unknown},
	}
	l := start(t)
	for _, from := range ledger.States() {
		for _, next := range append(ledger.States(), "lost") {
			a := create(t, l, "{}")
			for _, s := range way[from] {
				if _, err := l.Change(t.Context(), schema.DefaultTenant, a.ID, to(s)); err != nil {
					t.Fatalf("to %s: %v", s, err)
				}
			}
			_, err := l.Change(t.Context(), schema.DefaultTenant, a.ID, func(a *ledger.Approval) error {
				if next == from {
					a.State = next
					return nil
				}
				return to(next)(a)
			})
			if allowed := slices.Contains(want[from], next); allowed != (err == nil) {
				t.Errorf("%s → %s: %v", from, next, err)
			}
		}
	}
}

func TestSettledFieldsCannotBeChanged(t *testing.T) {
	l := start(t)
	a := create(t, l, "{}")
	if _, err := l.Change(t.Context(), schema.DefaultTenant, a.ID, func(a *ledger.Approval) error {
		a.TokenHash, a.Spent = "ab", &ledger.TokenUse{Attempt: "1", At: time.Now()}
		a.Decisions = []ledger.Decision{{By: "bob", Kind: ledger.Approve, At: time.Now()}}
		a.State, a.Warrant = ledger.Approved, []byte("signed")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func(*ledger.Approval){
		"binding":        func(a *ledger.Approval) { a.Binding.Tool = "other" },
		"binding digest": func(a *ledger.Approval) { a.Binding.Tool = "other"; a.BindingDigest = a.Binding.Digest() },
		"rule":           func(a *ledger.Approval) { a.Rule = []byte(`{"quorum":1}`) },
		"safe":           func(a *ledger.Approval) { a.Safe = true },
		"spent":          func(a *ledger.Approval) { a.Spent.Attempt = "2" },
		"not spent":      func(a *ledger.Approval) { a.Spent = nil },
		"token":          func(a *ledger.Approval) { a.TokenHash = "cd" },
		"edit":           func(a *ledger.Approval) { a.Edited = &ledger.Edited{} },
		"a decision":     func(a *ledger.Approval) { a.Decisions[0].Kind = ledger.Deny },
		"no decision":    func(a *ledger.Approval) { a.Decisions = nil },
		"warrant":        func(a *ledger.Approval) { a.Warrant = []byte("other") },
		"no warrant":     func(a *ledger.Approval) { a.Warrant = nil },
		"permission":     func(a *ledger.Approval) { a.Permission = "perm_1" },
		"ended":          func(a *ledger.Approval) { a.Ended = time.Now() },
		"no runner":      func(a *ledger.Approval) { a.State = ledger.Running },
	} {
		if _, err := l.Change(t.Context(), schema.DefaultTenant, a.ID, func(a *ledger.Approval) error { f(a); return nil }); err == nil {
			t.Errorf("%s was changed", name)
		}
	}
}

func TestReopenedLedgerFindsAllApprovals(t *testing.T) {
	s := bustest.Start(t)
	first := open(t, s.Connect(t, "a"), ledger.Options{})
	waiting, ran := create(t, first, "{}"), create(t, first, `{"n":1}`)
	run(t, first, ran.ID)
	second := open(t, s.Connect(t, "b"), ledger.Options{})
	if p := pending(second, schema.AllTenants()); len(p) != 1 || p[0].ID != waiting.ID {
		t.Errorf("pending: %v", p)
	}
	all, next := second.List(schema.AllTenants(), ledger.Filter{}, ledger.Cursor{})
	if len(all) != 2 || !next.IsZero() || all[0].ID != ran.ID {
		t.Errorf("%d listed, next %s", len(all), next)
	}
	one, next := second.List(schema.AllTenants(), ledger.Filter{Limit: 1}, ledger.Cursor{})
	two, end := second.List(schema.AllTenants(), ledger.Filter{Limit: 1}, next)
	if len(one) != 1 || len(two) != 1 || one[0].ID == two[0].ID || !end.IsZero() {
		t.Errorf("pages: %v %v %s", one, two, end)
	}
	if got, _ := second.List(schema.AllTenants(), ledger.Filter{States: []ledger.State{ledger.Running}, Server: "bank", Requester: "ann", Tool: "pay"}, ledger.Cursor{}); len(got) != 1 || got[0].ID != ran.ID {
		t.Errorf("running: %v", got)
	}
	if got, _ := second.List(schema.AllTenants(), ledger.Filter{Requester: "eve"}, ledger.Cursor{}); len(got) != 0 {
		t.Errorf("eve's: %v", got)
	}
}

// IDs do not sort by time: those of calls of batches and of durable calls are digests.
func TestApprovalsAreListedInTheOrderOfTheirCreation(t *testing.T) {
	l := start(t)
	var want []schema.ApprovalID
	began := time.Now().UTC()
	for i, id := range []schema.CallID{"call_9", "call_j-b7-x", "call_j-b3-x", "call_1", "call_j-b5-x", "call_0"} {
		a := question()
		a.CallID, a.Created = id, began.Add(time.Duration(i)*time.Millisecond)
		if _, err := l.Create(t.Context(), a, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		want = append(want, a.ID)
	}
	var oldest, newest []schema.ApprovalID
	for _, a := range pending(l, schema.AllTenants()) {
		oldest = append(oldest, a.ID)
	}
	for next := (ledger.Cursor{}); ; {
		page, more := l.List(schema.AllTenants(), ledger.Filter{Limit: 4}, next)
		for _, a := range page {
			newest = append(newest, a.ID)
		}
		if more.IsZero() {
			break
		}
		var ok bool
		if next, ok = ledger.ParseCursor(more.String()); !ok || next != more {
			t.Fatalf("%s is read as %s", more, next)
		}
	}
	if !slices.Equal(oldest, want) {
		t.Errorf("pending, oldest first: %v, not %v", oldest, want)
	}
	for _, id := range want[1:] {
		if _, err := l.Change(t.Context(), schema.DefaultTenant, id, to(ledger.Approved)); err != nil {
			t.Fatal(err)
		}
	}
	approved := ledger.Filter{States: []ledger.State{ledger.Approved}, OldestFirst: true, Limit: 2}
	page, next := l.List(schema.AllTenants(), approved, ledger.Cursor{})
	if len(page) != 2 || page[0].ID != want[1] || page[1].ID != want[2] {
		t.Errorf("the oldest approved ones are %v", page)
	}
	if page, _ = l.List(schema.AllTenants(), approved, next); len(page) != 2 || page[0].ID != want[3] || page[1].ID != want[4] {
		t.Errorf("the next ones are %v", page)
	}
	if slices.Reverse(want); !slices.Equal(newest, want) {
		t.Errorf("all, newest first: %v, not %v", newest, want)
	}
}

func TestWatchReportsWritesOfOtherProcesses(t *testing.T) {
	s := bustest.Start(t)
	one, other := open(t, s.Connect(t, "a"), ledger.Options{}), open(t, s.Connect(t, "b"), ledger.Options{})
	seen := make(chan ledger.State, 10)
	stop := other.Watch(schema.AllTenants(), func(a *ledger.Approval) { seen <- a.State })
	a := create(t, one, "{}")
	if s := within(t, "word of the approval", seen); s != ledger.Pending {
		t.Errorf("first %s", s)
	}
	if _, err := one.Change(t.Context(), schema.DefaultTenant, a.ID, to(ledger.Denied)); err != nil {
		t.Fatal(err)
	}
	if s := within(t, "word of the decision", seen); s != ledger.Denied {
		t.Errorf("then %s", s)
	}
	stop()
}

func TestTheViewIsBounded(t *testing.T) {
	l := open(t, bustest.Start(t).Connect(t, "test"), ledger.Options{MaxEnded: 5, MaxOpen: 3})
	denied := make(chan struct{}, 100)
	l.Watch(schema.AllTenants(), func(a *ledger.Approval) {
		if a.State == ledger.Denied {
			denied <- struct{}{}
		}
	})
	var ids []schema.ApprovalID
	for range 12 {
		a := create(t, l, "{}")
		if _, err := l.Change(t.Context(), schema.DefaultTenant, a.ID, to(ledger.Denied)); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, a.ID)
	}
	for range 12 {
		within(t, "word of a denial", denied)
	}
	var kept []schema.ApprovalID
	got, _ := l.List(schema.AllTenants(), ledger.Filter{OldestFirst: true}, ledger.Cursor{})
	for _, a := range got {
		kept = append(kept, a.ID)
	}
	if !slices.Equal(kept, ids[7:]) {
		t.Errorf("%v are in the view, of %v", kept, ids)
	}
	if a, _, err := l.Get(t.Context(), schema.AllTenants(), ids[0]); err != nil || a.State != ledger.Denied {
		t.Errorf("what left the view is gone: %v, %v", a, err)
	}
	for range 3 {
		create(t, l, "{}")
	}
	_, err := l.Create(t.Context(), question(), []byte("{}"))
	if e := schema.AsError(err); e == nil || e.Kind != schema.KindUnavailable || !e.Retryable {
		t.Errorf("one more than may wait: %v", err)
	}
}

func TestCanceledWriteReportsItsOutcome(t *testing.T) {
	l := start(t)
	for range 30 {
		a := create(t, l, "{}")
		ctx, giveUp := context.WithCancel(t.Context())
		_, err := l.Change(ctx, schema.DefaultTenant, a.ID, func(a *ledger.Approval) error {
			giveUp()
			return to(ledger.Running)(a)
		})
		got, _, readErr := l.Get(t.Context(), schema.AllTenants(), a.ID)
		if readErr != nil {
			t.Fatal(readErr)
		}
		switch {
		case err == nil && got.State == ledger.Running:
		case schema.KindOf(err) == schema.KindUnavailable && got.State == ledger.Pending:
		default:
			t.Errorf("the approval is %s, and its writer was told %v", got.State, err)
		}
		giveUp()
	}
}

func TestOnlyAPermissionLetsAnApprovalBeginRunning(t *testing.T) {
	l := start(t)
	running := func() *ledger.Approval {
		a := question()
		a.State, a.Permission, a.Runner = ledger.Running, "perm_1", &ledger.Runner{FrontDoor: "fd-1", Started: time.Now()}
		a.Decisions = []ledger.Decision{{By: "bob", Kind: ledger.Approve, Channel: ledger.ChannelStanding, At: time.Now()}}
		return a
	}
	for name, change := range map[string]func(*ledger.Approval){
		"no permission":       func(a *ledger.Approval) { a.Permission = "" },
		"no runner":           func(a *ledger.Approval) { a.Runner = nil },
		"nobody's yes":        func(a *ledger.Approval) { a.Decisions = nil },
		"a no":                func(a *ledger.Approval) { a.Decisions[0].Kind = ledger.Deny },
		"another channel":     func(a *ledger.Approval) { a.Decisions[0].Channel = "web" },
		"a token beside it":   func(a *ledger.Approval) { a.TokenHash = "ab" },
		"approved only":       func(a *ledger.Approval) { a.State = ledger.Approved },
		"over already":        func(a *ledger.Approval) { a.State = ledger.Succeeded },
		"a pending one of it": func(a *ledger.Approval) { a.State = ledger.Pending },
	} {
		a := running()
		change(a)
		if _, err := l.Create(t.Context(), a, []byte("{}")); schema.KindOf(err) != schema.KindInternal {
			t.Errorf("%s: %v", name, err)
		}
	}
	a := running()
	if _, err := l.Create(t.Context(), a, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if ended, err := l.End(t.Context(), schema.DefaultTenant, a.ID, []byte(`{}`), to(ledger.Succeeded)); err != nil || ended.State != ledger.Succeeded {
		t.Errorf("%+v, %v", ended, err)
	}
}

func TestConcurrentReadsAreNeverStale(t *testing.T) {
	s := bustest.Start(t)
	one, other := open(t, s.Connect(t, "a"), ledger.Options{}), open(t, s.Connect(t, "b"), ledger.Options{})
	a := create(t, one, "{}")
	for i := range 30 {
		want := fmt.Sprint(i)
		if _, err := one.Change(t.Context(), schema.DefaultTenant, a.ID, func(a *ledger.Approval) error {
			a.Decisions = append(a.Decisions, ledger.Decision{By: want, Kind: ledger.Extend, At: time.Now()})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if got, err := other.Current(t.Context(), schema.AllTenants(), a.ID); err != nil || got.Decisions[len(got.Decisions)-1].By != want {
					t.Errorf("it was read as it stood before: %v, %v", got, err)
				}
			})
		}
		all.Wait()
	}
}

func TestAResultOutlivesALaterChange(t *testing.T) {
	s := bustest.Start(t)
	one, other := open(t, s.Connect(t, "a"), ledger.Options{}), open(t, s.Connect(t, "b"), ledger.Options{})
	for _, n := range []int{0, 10, 300 << 10} {
		a, result := create(t, one, "{}"), noise(n)
		run(t, one, a.ID)
		ended, err := one.End(t.Context(), schema.DefaultTenant, a.ID, result, to(ledger.Succeeded))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Change(t.Context(), schema.DefaultTenant, a.ID, func(a *ledger.Approval) error { a.Told = time.Now(); return nil }); err != nil {
			t.Fatal(err)
		}
		for _, l := range []*ledger.Ledger{one, other} {
			if got, err := l.Result(t.Context(), ended); err != nil || !bytes.Equal(got, result) {
				t.Errorf("%d bytes: %d came back, %v", n, len(got), err)
			}
		}
	}
}
