package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// forbid is a policy that denies one tool.
const forbid = `
rules:
  - name: no-effects
    match: {server: pay, tool: effect}
    deny: effects are forbidden here
  - name: calm
    match: {server: calm}
    level: 1
`

// denials are ways to attempt a call that the policy denies: spellings and paths.
func denials(arguments string) map[string]func(d *door) (answer, error) {
	ways := make(map[string]func(d *door) (answer, error))
	way := func(name, method, path, body string, headers ...string) {
		ways[name] = func(d *door) (answer, error) { return d.try(method, path, body, headers...) }
	}
	for name, path := range map[string]string{
		"as it is": "/servers/pay/tools/effect", "percent-encoded": "/servers/p%61y/tools/eff%65ct", "upper case": "/servers/PAY/tools/EFFECT",
		"upper tool": "/servers/pay/tools/Effect", "space behind": "/servers/pay/tools/effect%20", "space before": "/servers/pay/tools/%20effect",
		"tab behind": "/servers/pay/tools/effect%09", "null behind": "/servers/pay/tools/effect%00", "dot segment": "/servers/pay/tools/./effect",
		"parent segment": "/servers/calm/tools/../../pay/tools/effect", "encoded parent": "/servers/calm%2F..%2Fpay/tools/effect", "double slash": "/servers//pay//tools//effect",
		"slash behind": "/servers/pay/tools/effect/", "semicolon": "/servers/pay/tools/effect;x=1", "query": "/servers/pay/tools/effect?timeout_ms=100",
		"full width": "/servers/pay/tools/%EF%BD%85ffect", "cyrillic": "/servers/pay/tools/%D0%B5ffect", "zero width": "/servers/pay/tools/eff%E2%80%8Bect",
		"combining": "/servers/pay/tools/effect%CC%81", "server space": "/servers/pay%20/tools/effect", "server zero width": "/servers/pa%E2%80%8By/tools/effect",
		"dotted": "/servers/pay/tools/pay.effect", "underscored": "/servers/pay/tools/pay__effect",
	} {
		way("path "+name, "POST", path, arguments)
		way("events "+name, "POST", path, arguments, "Accept: text/event-stream")
		way("async "+name, "POST", path, arguments, "Prefer: respond-async")
		way("keyed "+name, "POST", path, arguments, "Idempotency-Key: "+name)
	}
	for name, body := range map[string]string{
		"as it is":       `{"server":"pay","tool":"effect","arguments":%s}`,
		"escaped":        `{"server":"p\u0061y","tool":"eff\u0065ct","arguments":%s}`,
		"twice":          `{"server":"calm","server":"pay","tool":"effect","arguments":%s}`,
		"twice tool":     `{"server":"pay","tool":"echo","tool":"effect","arguments":%s}`,
		"case of member": `{"Server":"pay","server":"pay","TOOL":"echo","tool":"effect","arguments":%s}`,
		"upper case":     `{"server":"PAY","tool":"EFFECT","arguments":%s}`,
		"spaces":         `{"server":" pay","tool":"effect ","arguments":%s}`,
		"look-alike":     `{"server":"pay","tool":"\u0435ffect","arguments":%s}`,
		"method":         `{"server":"pay","tool":"effect","method":"resources/read","arguments":%s}`,
		"array":          `[{"server":"pay","tool":"effect","arguments":%s}]`,
		"callback":       `{"server":"pay","tool":"effect","arguments":%s,"callback_url":"https://example.com/"}`,
	} {
		text := fmt.Sprintf(body, arguments)
		way("body "+name, "POST", "/calls", text)
		way("body events "+name, "POST", "/calls", text, "Accept: text/event-stream")
		way("body async "+name, "POST", "/calls", text, "Prefer: respond-async")
	}
	way("override", "GET", "/servers/pay/tools/effect", arguments, "X-HTTP-Method-Override: POST")
	way("resource", "GET", "/servers/pay/resources/effect", "")
	way("prompt", "POST", "/servers/pay/prompts/effect", `{}`)
	return ways
}

func TestADeniedCallIsDeniedByEveryPathAndSpelling(t *testing.T) {
	effects := filepath.Join(t.TempDir(), "effects")
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, forbid)
	d := startUp(t, setup{
		servers: serversFile(t, map[string]entry{"pay": scripted(mcptest.Echo), "calm": scripted(mcptest.Echo)}), flags: []string{"--policy", policy},
	})
	d.waitServers(t, 1, "pay", "calm")
	arguments := fmt.Sprintf(`{"path":%q,"id":"forbidden"}`, effects)
	for name, ask := range denials(arguments) {
		a, err := ask(d)
		if err == nil && a.status < 400 && a.status != http.StatusAccepted && !strings.Contains(string(a.body), "isError") {
			t.Errorf("%s: %d %.200s", name, a.status, a.body)
		}
		if err == nil && a.status >= 500 && a.status != http.StatusBadGateway { // the server itself refuses an unknown resource
			t.Errorf("%s: %d %.200s", name, a.status, a.body)
		}
	}
	// The same tool of the other server is not denied, so these ways do reach a tool.
	if a := d.ask(t, "POST", "/servers/calm/tools/effect", fmt.Sprintf(`{"path":%q,"id":"calm"}`, effects)); a.status != http.StatusOK {
		t.Errorf("the other server's tool: %d %s", a.status, a.body)
	}
	if got := readEffects(t, effects); got["forbidden"] != 0 || got["calm"] != 1 {
		t.Errorf("the effects are %v", got)
	}
}

func TestWorkerChecksCallsThatBypassTheFrontDoor(t *testing.T) {
	effects := filepath.Join(t.TempDir(), "effects")
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, forbid+`
  - name: held
    match: {server: held}
    level: 2
`)
	n := startNATS(t, t.TempDir())
	servers := serversFile(t, map[string]entry{"pay": scripted(mcptest.Echo), "held": scripted(mcptest.Echo), "calm": scripted(mcptest.Echo)})
	w := startWorker(t, setup{nats: n.url, servers: servers, flags: []string{"--policy", policy}})
	d := startFrontDoor(t, setup{nats: n.url, flags: []string{"--policy", policy}})
	d.waitServers(t, 1, "pay", "held", "calm")

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	conn, err := bus.Connect(ctx, bus.Options{URL: n.url, Name: "intruder", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	intruder, err := conn.NewClient("intruder")
	if err != nil {
		t.Fatal(err)
	}
	defer intruder.Close()
	for name, f := range map[string]bus.CallFrame{
		"denied":              {Server: "pay", Tool: "effect"},
		"held":                {Server: "held", Tool: "effect"},
		"held, with a number": {Server: "held", Tool: "effect", Approval: "appr_00000000000000000000000000"},
		"let through":         {Server: "calm", Tool: "effect"},
	} {
		f.ID, f.Principal, f.Budget = schema.CallID("call_"+strings.ReplaceAll(name, " ", "")), "local", 5*time.Second
		f.Payload = fmt.Appendf(nil, `{"path":%q,"id":%q}`, effects, name)
		got := make(receiver, 8)
		if _, err := intruder.Send(schema.WorkerID(w.id), &f, got); err != nil {
			t.Fatal(err)
		}
		select {
		case kind := <-got:
			if want := name == "let through"; (kind == bus.ReplyResult) != want {
				t.Errorf("%s: the worker answers with kind %d", name, kind)
			}
		case <-ctx.Done():
			t.Fatalf("%s: no answer", name)
		}
	}
	if got := readEffects(t, effects); len(got) != 1 || got["let through"] != 1 {
		t.Errorf("the effects are %v", got)
	}
}

// receiver receives the kinds of the final frames.
type receiver chan bus.ReplyKind

func (r receiver) Reply(f *bus.ReplyFrame) {
	if f.Kind != bus.ReplyProgress {
		r <- f.Kind
	}
}
