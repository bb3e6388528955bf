package worker_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/warrant"
	"github.com/callyard/callyard/internal/warrant/warranttest"
	"github.com/callyard/callyard/internal/worker"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// fleet is a worker with servers whose calls need an approval, the keys that sign approvals, and a
// way to send it any frame.
type fleet struct {
	t                        *testing.T
	worker                   *worker.Worker
	router                   *dispatch.Router
	catalog                  *catalog.Catalog
	client                   *bus.Client
	approver, door, stranger *warrant.Signer
	effects                  string
}

func key(name string) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte(name), ed25519.SeedSize)[:ed25519.SeedSize])
}

func held(e config.ServerEntry) config.ServerEntry {
	e.Risk = risk.Medium
	return e
}

func startFleet(t *testing.T, policy string, entries ...config.ServerEntry) *fleet {
	t.Helper()
	f := &fleet{t: t, effects: filepath.Join(t.TempDir(), "effects")}
	trust := &warrant.Trust{}
	for _, signs := range []struct {
		as   **warrant.Signer
		name string
		may  []warrant.Decider
	}{{&f.approver, "approver", []warrant.Decider{warrant.People}}, {&f.door, "door", []warrant.Decider{warrant.Caller}}, {&f.stranger, "stranger", nil}} {
		k := key(signs.name)
		*signs.as = warrant.NewSigner(k, warrant.Deciders()...)
		if signs.may != nil {
			trust.Add(k.Public().(ed25519.PublicKey), signs.may...)
		}
	}
	srv := bustest.Start(t)
	f.worker = startTrusting(t, srv, trust, policy, quiet(), entries...)
	t.Cleanup(func() { stop(t, f.worker) })
	f.router, f.catalog = front(t, srv)
	var err error
	if f.client, err = srv.Connect(t, "anybody").NewClient(schema.NewID("router")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.client.Close() })
	for _, e := range entries {
		await(t, f.catalog, e.ID+" is ready", hasTools(f.catalog, e.ID))
	}
	return f
}

func startTrusting(t *testing.T, srv *bustest.Server, trust *warrant.Trust, policy string, log *slog.Logger, entries ...config.ServerEntry) *worker.Worker {
	t.Helper()
	cfg := settings.WorkerDefaults()
	served, err := worker.Serve(&cfg, entries)
	if err != nil {
		t.Fatal(err)
	}
	o := worker.Options{Name: "w", Version: "test", Conn: srv.Connect(t, "w"), Servers: served, Trust: trust, Metrics: telemetry.NewMetrics(), Log: log}
	if policy != "" {
		p, err := risk.Parse([]byte(policy), "policy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		o.Policy = risk.NewHolder(p)
	}
	w, err := worker.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// people is a policy that requires approval by people for every call.
const people = "rules:\n  - name: ask\n    match: {server: \"*\"}\n    approval: {by: groups, groups: [ops]}\n"

// effect returns a call of the tool effect, which records its runs, with arguments of every kind in
// addition to those that the tool reads.
func (f *fleet) effect(server schema.ServerID, id string) *bus.CallFrame {
	f.t.Helper()
	tool, err := f.catalog.Tool(server, "effect")
	if err != nil {
		f.t.Fatal(err)
	}
	n := schema.NewCallID()
	args := fmt.Sprintf(`{"path":%q,"id":%q,`, f.effects, id) + warranttest.JSON[1:]
	return &bus.CallFrame{
		ID: n, Server: server, Tool: "effect", Principal: "agent-key", Owner: "ana", ToolDigest: tool.Digest, Attempt: 1,
		Approval: schema.ApprovalID("appr_" + n[len("call_"):]), Budget: 20 * time.Second, Payload: []byte(args),
	}
}

// claimsOf returns the claims of a warrant for exactly this frame.
func claimsOf(frame *bus.CallFrame, how warrant.Decider) warrant.Claims {
	now, rule := time.Now(), &risk.Approval{By: risk.ByGroups, Groups: []string{"ops"}, Needed: 1}
	if how == warrant.Caller {
		rule = &risk.Approval{By: risk.ByCaller, Needed: 1}
	}
	return warrant.Claims{
		ApprovalID: frame.Approval, CallID: frame.ID, Server: frame.Server, Tool: frame.Tool, ToolDefinitionDigest: frame.ToolDigest,
		ArgumentsDigest: schema.Digest(frame.Payload), Requester: frame.Principal, Owner: frame.Owner, Level: risk.Medium, PolicyVersion: "default", How: how, Requirement: rule.Requirement().String(),
		Issued: now.UnixMilli(), Deadline: now.Add(10 * time.Minute).UnixMilli(),
	}
}

func (f *fleet) sign(s *warrant.Signer, c warrant.Claims) []byte {
	f.t.Helper()
	w, err := s.Sign(c)
	if err != nil {
		f.t.Fatal(err)
	}
	return w
}

// approved returns the frame with a warrant by people.
func (f *fleet) approved(frame *bus.CallFrame) *bus.CallFrame {
	frame.Warrant = f.sign(f.approver, claimsOf(frame, warrant.People))
	return frame
}

type answer chan bus.ReplyFrame

func (a answer) Reply(f *bus.ReplyFrame) {
	if f.Kind != bus.ReplyProgress {
		a <- *f
	}
}

// send sends the frame unchanged and returns the reason if it did not run, else nil.
func (f *fleet) send(frame *bus.CallFrame) *schema.Error {
	copied, got := *frame, make(answer, 1)
	if _, err := f.client.Send(f.worker.ID(), &copied, got); err != nil {
		f.t.Error(err)
		return schema.AsError(err)
	}
	reply := <-got
	if reply.Kind == bus.ReplyResult {
		return nil
	}
	e := &schema.Error{}
	if err := json.Unmarshal(reply.Payload, e); err != nil || reply.Started {
		f.t.Errorf("reply %d, started %v: %s", reply.Kind, reply.Started, reply.Payload)
	}
	return e
}

// ran returns the number of runs of the tool effect.
func (f *fleet) ran() (n int) {
	f.t.Helper()
	found, err := mcptest.ReadEffects(f.effects)
	if err != nil && !os.IsNotExist(err) {
		f.t.Fatal(err)
	}
	for _, times := range found {
		n += times
	}
	return n
}

const mutations = 10_000

func TestOnlyTheUnchangedCallOfTenThousandReachesTheServer(t *testing.T) {
	f := startFleet(t, people, entry("pay", mcptest.Echo), entry("Pay", mcptest.Echo))
	good := f.approved(f.effect("pay", "one"))
	claims := claimsOf(good, warrant.People)
	r := rand.New(rand.NewPCG(5, 11))
	changed := func(change func(c *warrant.Claims)) []byte {
		c := claims
		change(&c)
		return f.sign(f.approver, c)
	}
	changes := []struct {
		name string
		do   func(c *bus.CallFrame)
	}{
		{"approval", func(c *bus.CallFrame) { c.Approval = schema.ApprovalID(warranttest.Text(r, string(c.Approval))) }},
		{"call id", func(c *bus.CallFrame) { c.ID = schema.CallID(warranttest.Text(r, string(c.ID))) }},
		{"server", func(c *bus.CallFrame) { c.Server = schema.ServerID(warranttest.Text(r, string(c.Server))) }},
		{"case twin of the server", func(c *bus.CallFrame) { c.Server = "Pay" }},
		{"tool", func(c *bus.CallFrame) { c.Tool = warranttest.Text(r, c.Tool) }},
		{"another tool", func(c *bus.CallFrame) { c.Tool = []string{"echo", "add", "sleep", "env"}[r.IntN(4)] }},
		{"requester", func(c *bus.CallFrame) { c.Principal = warranttest.Text(r, c.Principal) }},
		{"owner", func(c *bus.CallFrame) { c.Owner = warranttest.Text(r, c.Owner) }},
		{"arguments", func(c *bus.CallFrame) { c.Payload = warranttest.Arguments(r, c.Payload) }},
		{"more arguments", func(c *bus.CallFrame) { c.Payload = warranttest.Arguments(r, c.Payload) }},
		{"method", func(c *bus.CallFrame) { c.Method = warranttest.Text(r, schema.MethodCallTool) + " " }},
		{"warrant", func(c *bus.CallFrame) { c.Warrant = warranttest.Proof(r, c.Warrant) }},
		{"more of the warrant", func(c *bus.CallFrame) { c.Warrant = warranttest.Proof(r, c.Warrant) }},
		{"no warrant", func(c *bus.CallFrame) { c.Warrant = nil }},
		{"key", func(c *bus.CallFrame) { c.Warrant = f.sign(f.stranger, claims) }},
		{"role", func(c *bus.CallFrame) { c.Warrant = f.sign(f.door, claims) }},
		{"the caller's own yes", func(c *bus.CallFrame) { c.Warrant = f.sign(f.door, claimsOf(good, warrant.Caller)) }},
		{"a standing yes", func(c *bus.CallFrame) { c.Warrant = f.sign(f.door, claimsOf(good, warrant.Standing)) }},
		{"level", func(c *bus.CallFrame) { c.Warrant = changed(func(c *warrant.Claims) { c.Level = risk.Low }) }},
		{"the requirement of another call", func(c *bus.CallFrame) {
			c.Warrant = changed(func(c *warrant.Claims) {
				c.Requirement = (&risk.Approval{By: risk.ByGroups, Groups: []string{"interns"}, Needed: 9}).Requirement().String()
			})
		}},
		{"tool redefined meanwhile", func(c *bus.CallFrame) {
			c.Warrant = changed(func(c *warrant.Claims) { c.ToolDefinitionDigest = schema.Digest([]byte("older")) })
		}},
		{"deadline", func(c *bus.CallFrame) {
			c.Warrant = changed(func(c *warrant.Claims) {
				c.Issued, c.Deadline = 0, time.Now().Add(-warrant.Leeway-time.Second).UnixMilli()
			})
		}},
		{"the yes to other arguments", func(c *bus.CallFrame) {
			c.Warrant = changed(func(c *warrant.Claims) { c.ArgumentsDigest = schema.Digest(warranttest.Arguments(r, good.Payload)) })
		}},
	}
	ran := make(map[string]int)
	for n := range mutations {
		change, c := changes[n%len(changes)], *good
		if change.do(&c); f.send(&c) == nil {
			ran[change.name]++
		}
	}
	if len(ran) > 0 || f.ran() > 0 {
		t.Errorf("changed calls ran: %v, with %d effects", ran, f.ran())
	}
	if refusal := f.send(good); refusal != nil {
		t.Errorf("the unchanged call: %v", refusal)
	}
	if n := f.ran(); n != 1 {
		t.Errorf("%d effects", n)
	}
}

func TestACallThatIsSentAgainDoesNotRunAgain(t *testing.T) {
	f := startFleet(t, "", held(entry("pay", mcptest.Echo)))
	frame := f.effect("pay", "one")
	frame.Warrant = f.sign(f.door, claimsOf(frame, warrant.Caller))
	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			c := *frame
			c.Attempt, c.Safe = i, true // not bound by the warrant, and no excuse
			if refusal := f.send(&c); refusal == nil {
				won.Add(1)
			} else if refusal.Kind != schema.KindConflict || refusal.CallID != frame.ID {
				t.Error(refusal)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || f.ran() != 1 {
		t.Errorf("%d ran, with %d effects", won.Load(), f.ran())
	}
}

func TestAMessageThatComesTwiceRunsOnce(t *testing.T) {
	f := startFleet(t, "", entry("calm", mcptest.Echo))
	frame := f.effect("calm", "one")
	frame.Seq = 7
	frame.Payload = []byte(fmt.Sprintf(`{"path":%q,"id":"one","ms":300}`, f.effects))
	f.worker.Call(frame, bus.ReplyTo("nobody."))
	f.worker.Call(frame, bus.ReplyTo("nobody."))
	polltest.Until(t, "it runs", func() bool { return f.ran() > 0 })
	// The next call has the same session and ends after these.
	if refusal := f.send(f.effect("calm", "two")); refusal != nil {
		t.Fatal(refusal)
	}
	if n := f.ran(); n != 2 {
		t.Errorf("%d effects", n)
	}
}

func TestRouterSendsTheWarrantToTheWorker(t *testing.T) {
	f := startFleet(t, "", held(entry("pay", mcptest.Echo)))
	frame := f.effect("pay", "one")
	call := &schema.Call{
		ID: frame.ID, Server: "pay", Tool: "effect", Arguments: frame.Payload, ToolDigest: frame.ToolDigest, Timeout: 10 * time.Second,
		Approval: frame.Approval, Principal: schema.Principal{Name: frame.Principal, Owner: frame.Owner},
	}
	if _, err := f.router.Do(context.Background(), call); schema.KindOf(err) != schema.KindForbidden || f.ran() != 0 {
		t.Errorf("without a warrant: %v", err)
	}
	call.Warrant = f.sign(f.door, claimsOf(frame, warrant.Caller))
	if _, err := f.router.Do(context.Background(), call); err != nil || f.ran() != 1 {
		t.Errorf("with its warrant: %v", err)
	}
}

func TestApprovedCallThatNeverStartedCanBeResent(t *testing.T) {
	busy := held(entry("pay", mcptest.Echo))
	busy.Sessions, busy.InFlight = 1, 1
	f := startFleet(t, "", busy)
	other := filepath.Join(t.TempDir(), "other")
	goOn := other + ".go"
	long := f.effect("pay", "")
	long.Payload = []byte(fmt.Sprintf(`{"path":%q,"id":"long","after":%q}`, other, goOn))
	long.Warrant = f.sign(f.door, claimsOf(long, warrant.Caller))
	ended := make(answer, 1)
	if _, err := f.client.Send(f.worker.ID(), long, ended); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the long one holds the only place", func() bool {
		effects, err := mcptest.ReadEffects(other)
		return err == nil && effects["long"] == 1
	})
	waits := f.effect("pay", "waits")
	waits.Budget = 50 * time.Millisecond
	waits.Warrant = f.sign(f.door, claimsOf(waits, warrant.Caller))
	if refusal := f.send(waits); refusal == nil || refusal.Kind == schema.KindConflict || refusal.Kind == schema.KindForbidden {
		t.Errorf("behind the long one: %v", refusal)
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if reply := <-ended; reply.Kind != bus.ReplyResult {
		t.Errorf("the long one: %s", reply.Payload)
	}
	waits.Budget = 10 * time.Second
	if refusal := f.send(waits); refusal != nil {
		t.Errorf("again: %v", refusal)
	}
	if n := f.ran(); n != 1 {
		t.Errorf("%d effects", n)
	}
}

func TestWorkerWithoutTrustedKeysRefusesApprovedCalls(t *testing.T) {
	srv := bustest.Start(t)
	for _, trust := range []*warrant.Trust{nil, {}} {
		var log bytes.Buffer
		w := startTrusting(t, srv, trust, "", slog.New(slog.NewTextHandler(&log, nil)), held(entry("pay", mcptest.Echo)), entry("calm", mcptest.Echo))
		f := &fleet{t: t, worker: w, effects: filepath.Join(t.TempDir(), "effects"), approver: warrant.NewSigner(key("approver"), warrant.Deciders()...)}
		f.router, f.catalog = front(t, srv)
		var err error
		if f.client, err = srv.Connect(t, "anybody").NewClient(schema.NewID("router")); err != nil {
			t.Fatal(err)
		}
		await(t, f.catalog, "pay is ready", hasTools(f.catalog, "pay"))
		await(t, f.catalog, "calm is ready", hasTools(f.catalog, "calm"))
		for range 3 {
			refusal := f.send(f.approved(f.effect("pay", "one")))
			if refusal == nil || refusal.Kind != schema.KindForbidden || !strings.Contains(refusal.Detail, "warrants.people_keys") || !strings.Contains(refusal.Detail, "warrants.caller_keys") {
				t.Errorf("it does not say what to configure: %v", refusal)
			}
		}
		if refusal := f.send(f.effect("calm", "two")); refusal != nil {
			t.Errorf("a call of low risk: %v", refusal)
		}
		if n := f.ran(); n != 1 {
			t.Errorf("%d effects", n)
		}
		_ = f.client.Close()
		stop(t, w)
		if n := strings.Count(log.String(), "trusts no warrant keys"); n != 1 {
			t.Errorf("it said so %d times at the start", n)
		}
	}
}
