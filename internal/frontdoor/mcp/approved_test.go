package mcp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/calls/execution"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

func TestTheProgressOfAConfirmedCallReachesTheClientBeforeItsResult(t *testing.T) {
	f := openFabric(t, nil)
	check := func(era string, next func() string) {
		t.Helper()
		for i := range 20 {
			want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"my token","progress":%d,"total":20.0,"odd":9007199254740993}}`, i+1)
			if got := next(); got != want {
				t.Fatalf("%s: %s, want %s", era, got, want)
			}
		}
		if got := next(); get([]byte(got), "result") == nil {
			t.Errorf("%s: %s", era, got)
		}
	}

	state := getString([]byte(f.callAs(canForms, "/mcp/risky", "steps", `{}`, "").result(t)), "requestState")
	members := fmt.Sprintf(`"name":"steps","arguments":{},"inputResponses":%s,"requestState":%q`, approve, state)
	body := modernBody("tools/call", members, canForms, `"progressToken":"my token"`)
	all := f.send(f.request("POST", "/mcp/risky", body, modernHeaders("tools/call", "steps")...)).messages()
	check("modern", func() string {
		if len(all) == 0 {
			t.Fatal("modern: no more messages")
		}
		m := all[0]
		all = all[1:]
		return string(m)
	})

	s := f.enter("/mcp/risky", canForms)
	res, err := f.client.Do(s.request(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"steps","_meta":{"progressToken":"my token"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	next := events(t, res)
	question := []byte(next())
	s.send(`{"jsonrpc":"2.0","id":` + string(get(question, "id")) + `,"result":{"action":"accept","content":{"confirm":true}}}`)
	check("legacy", next)
}

func TestConfirmedCallWithoutEventStreamReturnsOnlyItsResult(t *testing.T) {
	f := openFabric(t, nil)
	state := getString([]byte(f.callAs(canForms, "/mcp/risky", "steps", `{}`, "").result(t)), "requestState")
	members := fmt.Sprintf(`"name":"steps","arguments":{},"inputResponses":%s,"requestState":%q`, approve, state)
	r := f.request("POST", "/mcp/risky", modernBody("tools/call", members, canForms, `"progressToken":1`), modernHeaders("tools/call", "steps")...)
	r.Header.Set("Accept", "application/json")
	if a := f.send(r); !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") || get(a.body, "result") == nil {
		t.Errorf("%s", a.body)
	}
}

func TestCallUnderStandingPermissionReportsProgress(t *testing.T) {
	f := openJudged(t, judge(t, askPeople), nil)
	of := f.Calls
	of.Desk = approval.New(approval.Options{Ledger: of.Ledger, Log: f.Log, Runner: of.FrontDoor, Sign: func(*ledger.Approval) ([]byte, error) { return []byte("signed"), nil }})
	of.Chain = execution.New(execution.Options{Gate: of.Gate, Router: f.Router, Metrics: f.Metrics, Desk: of.Desk})
	o := f.endpoint.o
	o.Calls = calls.New(of)
	f = f.serving(o)

	f.callAs(canURLs, "/mcp/risky", "steps", `{}`, "").result(t)
	held := of.Ledger.Where(schema.AllTenants(), func(a *ledger.Approval) bool { return a.State == ledger.Pending })
	if len(held) != 1 {
		t.Fatalf("%d held calls", len(held))
	}
	answer := approval.Answer{
		Kind: ledger.Approve, Digest: held[0].Binding.ArgumentsDigest,
		Allow: &ledger.Allow{Until: time.Now().Add(time.Hour), Pattern: ledger.Pattern{Kind: ledger.AnyArguments}},
	}
	if _, err := of.Desk.Decide(t.Context(), held[0].ID, answer, schema.Principal{Name: "olga", Groups: []string{"ops"}}, "web"); err != nil {
		t.Fatal(err)
	}

	body := modernBody("tools/call", `"name":"steps"`, canURLs, `"progressToken":"p"`)
	all := f.send(f.request("POST", "/mcp/risky", body, modernHeaders("tools/call", "steps")...)).messages()
	if len(all) != 21 || get(all[20], "result") == nil || getString(all[0], "method") != "notifications/progress" {
		t.Errorf("%s", all)
	}
}
