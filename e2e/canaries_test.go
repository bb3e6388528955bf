package e2e

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/approver/slack/slacktest"
	"github.com/callyard/callyard/internal/authn/token/tokentest"
	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/internal/telemetry/tracetest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// canaryFabric is a fabric of separate processes in which every secret is a canary.
type canaryFabric struct {
	*canaries
	*personalFabric
	door, approver, worker setup
	front, pages           *door
	work                   *workerProcess
	logs                   []*process
	redis                  *confirmtest.Redis
	spans                  *tracetest.Receiver
	issuer                 *tokentest.Issuer
	keys                   []string // of callers, by API key
	tokens                 []string // of callers, by access token
	servers                []string // with a stored credential
}

// file writes a file of the operator, which may contain secrets.
func (v *canaryFabric) file(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	write(t, path, text)
	return path
}

// openVault starts the fabric.
func openVault(t testing.TB) *canaryFabric {
	t.Helper()
	c := newCanaries()
	v := &canaryFabric{canaries: c, personalFabric: openPeople(t, c.fresh("client secret of crm")), spans: collector(t), issuer: tokentest.Start(t)}
	c.add("key of the credentials", v.keyText)
	v.redis = confirmtest.StartRedis(t, "", porttest.Address(t), "--rdbcompression", "no")
	if err := v.redis.Client.ConfigSet(t.Context(), "list-compress-depth", "0").Err(); err != nil {
		t.Fatal(err)
	}
	entries := v.stored(t)
	entries["crm"] = map[string]any{"url": v.crm.URL + "/mcp", "auth": map[string]any{"mode": "user"}}
	jira := startDigester(t, "X-Api-Key", func(key string) bool { return !strings.Contains(key, "wrong") })
	entries["jira"] = map[string]any{"url": jira.URL + "/mcp", "auth": map[string]any{"mode": "user"}}
	program := scripted(mcptest.Echo)
	program.Env["SECRET"] = c.fresh("environment of a program")
	entries["held"] = map[string]any{"command": program.Command, "args": program.Args, "env": program.Env, "riskLevel": 2}
	v.section += fmt.Sprintf("    - {name: jira, url: %s/mcp, kind: header, header: X-Api-Key}\n", jira.URL)
	erp := startDigester(t, "Authorization", func(value string) bool { return v.as.Takes(strings.TrimPrefix(value, "Bearer ")) })
	entries["erp"] = map[string]any{"url": erp.URL + "/mcp", "auth": map[string]any{"mode": "user"}}
	secret := c.fresh("client secret of erp")
	v.as.AddClient("exchanger", secret)
	v.as.Subjects = func(token string) (user, refusal string) {
		if !slices.Contains(v.tokens, token) {
			return "", "invalid_request"
		}
		return "the person of " + digestOf(token), ""
	}
	v.section += fmt.Sprintf("    - {name: erp, url: %s/mcp, kind: exchange, issuer: %s, client_id: exchanger, client_secret_file: %s}\n", erp.URL, v.as.URL, v.file(t, "erp", secret))
	list, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		t.Fatal(err)
	}
	v.reopen(t, v.keyFile, v.crmServer, keyServer("jira", jira.URL+"/mcp", "X-Api-Key"))
	debug := []string{"CALLYARD_LOG_LEVEL=debug", "CALLYARD_TRACES_ENDPOINT=" + v.spans.URL(), "CALLYARD_TRACES_BATCH_RATIO=1", soonSent, "CALLYARD_REDIS_URL=redis://" + v.redis.Address}
	signs, trusts := callerKeys(t)
	v.worker = setup{nats: v.nats.url, servers: v.file(t, "servers.json", string(list)), env: append(trusts, debug...)}
	v.door = setup{nats: v.nats.url, config: v.frontDoor(t) + v.section, env: append(signs, debug...)}
	approves := c.fresh("API key of an approver")
	slack := slacktest.Start(t)
	c.add("Slack's bot token", slacktest.BotToken)
	c.add("Slack's signing secret", slacktest.SigningSecret)
	v.approver = setup{nats: v.nats.url, env: debug, config: fmt.Sprintf("approver:\n  drain_delay: 1ms\n  keys:\n    - {name: ann, groups: [ops], hash: %q}\n  slack:\n    bot_token: %s\n    signing_secret: %s\n    team_id: %s\n    app_id: %s\n    channels: {ops: C0}\n    api_url: %s\n",
		hashOf(approves), slacktest.BotToken, slacktest.SigningSecret, slacktest.Team, slacktest.App, slack.URL) + v.section}
	v.begin(t)
	c.ask(t, v.pages, "GET", "/approvals", "", "X-API-Key: "+approves)
	c.ask(t, v.pages, "GET", "/approvals", "", "X-API-Key: "+c.fresh("wrong API key at the approver"))
	return v
}

// stored returns servers with a stored credential, one for each kind of credential.
func (v *canaryFabric) stored(t testing.TB) map[string]any {
	t.Helper()
	good := map[string]bool{}
	takes := startDigester(t, "Authorization", func(value string) bool {
		value = strings.TrimPrefix(value, "Bearer ")
		return good[value] || v.as.Takes(value)
	})
	entries := map[string]any{}
	for i := range 6 {
		value, fromFile, header, secret := fmt.Sprint("value", i), fmt.Sprint("file", i), fmt.Sprint("header", i), fmt.Sprint("service", i)
		for _, name := range []string{value, fromFile, header, secret} {
			good[v.fresh("secret of "+name)] = true
		}
		last := len(v.names) - 4
		of := func(n int) string { return string(v.forms[v.names[last+n]][0]) }
		entries[value] = map[string]any{"url": takes.URL + "/mcp", "auth": map[string]any{"mode": "static", "value": of(0)}}
		entries[fromFile] = map[string]any{"url": takes.URL + "/mcp", "auth": map[string]any{"mode": "static", "value_file": v.file(t, "secret", of(1))}}
		entries[header] = map[string]any{"url": takes.URL + "/mcp", "headers": map[string]string{"Authorization": of(2)}}
		v.servers = append(v.servers, value, fromFile, header)
		if i < 3 {
			v.as.AddClient(secret, of(3))
			entries[secret] = map[string]any{"url": takes.URL + "/mcp", "auth": map[string]any{"mode": "oauth_service", "issuer": v.as.URL, "client_id": secret, "client_secret_file": v.file(t, "client", of(3))}}
			v.servers = append(v.servers, secret)
		}
	}
	refused := map[string]any{"mode": "static", "value": v.fresh("secret that the server refuses")}
	entries["refused"] = map[string]any{"url": takes.URL + "/mcp", "auth": refused}
	entries["unread"] = map[string]any{"url": takes.URL + "/mcp", "auth": map[string]any{"mode": "static", "value_file": v.file(t, "secret", v.fresh("secret with a character that cannot be sent")+"ä")}}
	return entries
}

// frontDoor is the configuration of a front door with callers of each kind.
func (v *canaryFabric) frontDoor(t testing.TB) string {
	t.Helper()
	public := "https://tools.example.com"
	text := "webhooks:\n  secrets_file: " + v.file(t, "webhooks", v.webhookSecret()+"\n"+v.webhookSecret()+"\n") + "\nfront_door:\n  drain_delay: 1ms\n  public_url: " + public + "\n  issuers:\n    - {name: corp, issuer: " + v.issuer.URL + ", claims: {owner: sub}}\n  keys:\n"
	for i := range 5 {
		key := v.fresh(fmt.Sprint("API key ", i))
		text += fmt.Sprintf("    - {name: key%d, owner: person%d, hash: %q}\n", i, i, hashOf(key))
		v.keys = append(v.keys, key)
	}
	for i := range 4 {
		raw := v.issuer.Token(t, fmt.Sprint("person", i), public, "tools:read tools:call calls:read")
		v.add(fmt.Sprint("access token of a caller ", i), raw)
		v.add(fmt.Sprint("signature of the token ", i), raw[strings.LastIndexByte(raw, '.')+1:])
		v.tokens = append(v.tokens, raw)
	}
	return text
}

func (v *canaryFabric) webhookSecret() string {
	raw := base64.StdEncoding.EncodeToString([]byte("cnry+" + rand.Text())[:24])
	v.add("webhook secret", raw)
	return "whsec_" + raw
}

// begin starts or restarts the processes.
func (v *canaryFabric) begin(t testing.TB) {
	t.Helper()
	v.front, v.pages, v.work = startFrontDoor(t, v.door), startApprover(t, v.approver), startWorker(t, v.worker)
	v.logs = append(v.logs, v.front.process, v.pages.process, v.work.process)
	v.front.eventually(t, startWithin, "the servers", func() error {
		for _, s := range append([]string{"crm", "jira", "erp", "held"}, v.servers...) {
			if a, err := v.front.try("GET", "/servers/"+s+"/tools", "", "X-API-Key: "+v.keys[0]); err != nil || a.status != http.StatusOK {
				return fmt.Errorf("%s: %d %s, %v", s, a.status, a.body, err)
			}
		}
		return nil
	})
}

// calls makes every caller call every server, in each way, with errors of each kind.
func (v *canaryFabric) calls(t testing.TB) {
	t.Helper()
	call := func(server, tool, arguments, header string) answer {
		return v.ask(t, v.front, "POST", toolPath(server, tool), arguments, header)
	}
	callers := make([]string, 0, len(v.keys)+len(v.tokens))
	for _, key := range v.keys {
		callers = append(callers, "X-API-Key: "+key)
	}
	for _, token := range v.tokens {
		callers = append(callers, "Authorization: Bearer "+token)
	}
	for _, s := range v.servers {
		// A token that is refused right after it was issued is not replaced.
		if a := call(s, "digest", `{}`, callers[0]); a.status != http.StatusOK && !strings.HasPrefix(s, "service") {
			t.Errorf("%s: %d %s", s, a.status, a.body)
		}
		call(s, "digest", `{"text":"please fail"}`, callers[1])
	}
	for _, c := range callers {
		// A caller's token is exchanged. A call with an API key, or a durable call, has none.
		want := http.StatusOK
		if strings.HasPrefix(c, "X-API-Key") {
			want = http.StatusForbidden
		}
		if a := call("erp", "digest", `{}`, c); a.status != want {
			t.Errorf("erp: %d %s", a.status, a.body)
		}
		if a := v.ask(t, v.front, "POST", "/calls", `{"server":"erp","tool":"digest","arguments":{}}`, c, "Prefer: respond-async"); a.status != http.StatusForbidden && a.status != http.StatusAccepted {
			t.Errorf("a durable call of erp: %d %s", a.status, a.body)
		}
		for _, s := range []string{"crm", "jira"} {
			call(s, "digest", `{}`, c)
			call(s, "digest", `{"text":"please fail"}`, c)
		}
	}
	for _, s := range []string{"refused", "unread", "nowhere"} {
		call(s, "digest", `{}`, callers[0])
	}
	held := call("held", "echo", `{"text":"x"}`, callers[0])
	var h heldAnswer
	decode(t, held.body, &h)
	v.ask(t, v.front, "POST", "/confirmations/"+h.ID, `{"confirm":true}`, callers[0])
	v.ask(t, v.front, "POST", "/calls", `{"server":"crm","tool":"digest","arguments":{}}`, callers[0], "Prefer: respond-async")
	v.ask(t, v.front, "POST", "/batches", `{"server":"crm","tool":"digest","arguments":{}}`, callers[0], ndjsonType)
	wrong := v.fresh("wrong API key")
	v.ask(t, v.front, "GET", "/servers", "", "X-API-Key: "+wrong)
	for _, path := range []string{"/servers", "/calls", "/metrics", "/audit", "/usage", "/keys", "/tenants", "/servers/crm", "/servers/refused", "/servers/unread", "/calls?limit=500"} {
		v.ask(t, v.front, "GET", path, "", callers[0])
	}
}

// connectAll connects people, and records their credentials. Their access tokens are those
// that the authorization server issued.
func (v *canaryFabric) connectAll(t testing.TB) {
	t.Helper()
	for i := range 5 {
		owner := fmt.Sprint("person", i)
		v.connect(t, owner)
		if err := v.book.SetSecret(t.Context(), "jira", personOf(owner), v.fresh("key at jira of "+owner)); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.book.SetSecret(t.Context(), "jira", personOf("person4"), v.fresh("wrong key at jira")+"wrong"); err != nil {
		t.Fatal(err)
	}
}

// TestSecretSearchFindsEveryEncoding tests the search that the next test uses.
func TestSecretSearchFindsEveryEncoding(t *testing.T) {
	secret := newCanaries().fresh("x")
	for before := range 4 {
		text := strings.Repeat("a", before) + secret + "zz"
		for what, hidden := range map[string]string{
			"plain": text, "hex": fmt.Sprintf("%x", text), "HEX": fmt.Sprintf("%X", text), "query": url.QueryEscape(text), "path": url.PathEscape(text),
			"base64": base64.StdEncoding.EncodeToString([]byte(text)), "base64url": base64.RawURLEncoding.EncodeToString([]byte(text)),
		} {
			if !slices.ContainsFunc(formsOf(secret), func(form []byte) bool { return strings.Contains(hidden, string(form)) }) {
				t.Errorf("%s after %d letters is not found", what, before)
			}
		}
	}
}

// TestNoSecretLeaksIntoFilesOutputOrResponses makes every secret a canary, runs calls, failures
// and restarts, and searches for each canary in several encodings in all files, output
// and responses of the fabric.
func TestNoSecretLeaksIntoFilesOutputOrResponses(t *testing.T) {
	v := openVault(t)
	v.connectAll(t)
	v.calls(t)
	made := v.ask(t, v.front, "POST", "/keys", `{"name":"nightly","scopes":["tools:call:value0"]}`, "X-API-Key: "+v.keys[0])
	var k madeKey
	decode(t, made.body, &k)
	if made.status != http.StatusCreated || k.Secret == "" {
		t.Fatalf("making a key: %d %s", made.status, made.body)
	}
	v.said.Reset() // this response shows it once
	v.ask(t, v.front, "POST", toolPath("value0", "digest"), `{}`, "X-API-Key: "+k.Secret)

	// All tokens expire, the worker dies, and then all grants end.
	v.as.RevokeAll()
	v.calls(t)
	v.work.kill9(t)
	v.front.stop(t)
	v.pages.stop(t)
	v.begin(t)
	v.as.RevokeAll()
	v.as.RevokeGrants()
	v.calls(t)

	v.add("key made over the API", k.Secret)
	for name, secret := range v.as.Secrets() {
		v.add(name, secret)
	}
	v.front.stop(t)
	v.pages.stop(t)
	v.work.stop(t)
	for _, p := range v.logs {
		v.search(t, "the log of "+p.Name, []byte(p.Out.String()), `"level":"DEBUG"`)
	}
	v.search(t, "the log of NATS", []byte(v.nats.Out.String()), "JetStream")
	v.search(t, "the traces", asJSON(t, v.spans.Spans()), "tools/call digest")
	v.search(t, "Redis", everythingIn(t, v.redis), "callyard")
	v.search(t, "the answers", v.said.Bytes(), "connect-required")
	v.nats.stop(t)
	v.search(t, "the files of NATS", filesIn(t, v.natsDir), "person1")
	t.Logf("%d secrets were looked for in %d bytes of answers", len(v.names), v.said.Len())
	if len(v.names) < 50 {
		t.Errorf("there are %d canaries", len(v.names))
	}
}
