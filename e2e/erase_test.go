package e2e

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// encryptedFabric is a fabric of separate processes that encrypts the data of tenants.
type encryptedFabric struct {
	*canaries
	natsDir string
	nats    *natsProcess
	redis   *confirmtest.Redis
	front   *door
	work    *workerProcess
	admin   string // a header
}

const erasurePolicy = `
rules:
  - {name: held, match: {server: tools, tool: echo}, when: 'args.text.startsWith("hold ")', approval: {by: caller}}
  - {name: plain, match: {server: tools, tool: effect}, level: 1}
  - {name: kept, match: {server: tools, tool: echo}, level: 1, cache: {ttl: 1h}}
`

func openEncryptedFabric(t *testing.T, receiver string) *encryptedFabric {
	t.Helper()
	y := &encryptedFabric{canaries: newCanaries(), natsDir: t.TempDir()}
	y.nats = startNATS(t, y.natsDir)
	y.redis = confirmtest.StartRedis(t, "", porttest.Address(t), "--rdbcompression", "no")
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		write(t, path, text)
		return path
	}
	raw := make([]byte, 32)
	_, _ = rand.Read(raw)
	key := file("keys", base64.StdEncoding.EncodeToString(raw)+"\n")
	secrets := file("webhooks", "whsec_"+base64.StdEncoding.EncodeToString(raw[:24])+"\n")
	y.admin = "X-API-Key: admin"
	signs, trusts := callerKeys(t)
	env := []string{"CALLYARD_LOG_LEVEL=debug", "CALLYARD_REDIS_URL=redis://" + y.redis.Address, "CALLYARD_POLICY=" + file("policy.yaml", erasurePolicy)}
	y.work = startWorker(t, setup{nats: y.nats.url, servers: serversFile(t, map[string]entry{"tools": trusted(scripted(mcptest.Echo))}), env: append(trusts, "CALLYARD_LOG_LEVEL=debug")})
	y.front = startFrontDoor(t, setup{nats: y.nats.url, env: append(signs, env...), config: fmt.Sprintf(
		"encryption: {key_file: %s}\nwebhooks: {secrets_file: %s, allow_private: true, allowed_hosts: [%q]}\nfront_door:\n  drain_delay: 1ms\n  keys:\n    - {name: admin, hash: %q}\n", key, secrets, receiver, hashOf("admin"))})
	y.front.eventually(t, startWithin, "the server", func() error {
		if a, err := y.front.try("GET", "/servers/tools/tools", "", y.admin); err != nil || a.status != http.StatusOK {
			return fmt.Errorf("%d, %v", a.status, err)
		}
		return nil
	})
	return y
}

// key creates an API key of a tenant, and returns its header.
func (y *encryptedFabric) key(t *testing.T, tenant string) string {
	t.Helper()
	a := y.front.ask(t, "POST", "/keys", fmt.Sprintf(`{"name":"%s/key","tenant":%q,"scopes":["tools:read","tools:call","calls:read"]}`, tenant, tenant), y.admin)
	var k madeKey
	decode(t, a.body, &k)
	if a.status != http.StatusCreated || k.Secret == "" {
		t.Fatalf("a key of %s: %d %s", tenant, a.status, a.body)
	}
	return "X-API-Key: " + k.Secret
}

// made holds the calls of one tenant, whose results it may read.
type made struct{ key, call, batch, cached, canary string }

// everyKind makes calls of every kind, with separate canaries in the arguments and the results.
func (y *encryptedFabric) everyKind(t *testing.T, tenant, receiver string) made {
	t.Helper()
	m := made{key: y.key(t, tenant)}
	echo := func(kind string) (secret, arguments string) {
		secret = y.fresh(tenant + ": " + kind)
		return secret, string(asJSON(t, map[string]string{"text": secret}))
	}
	post := func(want int, path, body string, headers ...string) answer {
		t.Helper()
		a := y.front.ask(t, "POST", path, body, append(headers, m.key)...)
		if a.status != want {
			t.Fatalf("%s: POST %s %s: %d %s", tenant, path, body, a.status, a.body)
		}
		return a
	}
	// A result that is cached in Redis.
	_, m.cached = echo("cached")
	post(http.StatusOK, toolPath("tools", "echo"), m.cached)
	// A tool error that contains the arguments.
	post(http.StatusOK, toolPath("tools", "effect"), string(asJSON(t, map[string]string{"path": "/nowhere/" + y.fresh(tenant+": error"), "id": "x"})))
	// Durable calls: with a key, and with a callback to a receiver that refuses all requests.
	secret, arguments := echo("durable")
	a := post(http.StatusAccepted, "/calls", `{"server":"tools","tool":"echo","arguments":`+arguments+`}`, "Prefer: respond-async", "Idempotency-Key: "+y.fresh(tenant+": idempotency key"))
	var c struct {
		ID string `json:"id"`
	}
	decode(t, a.body, &c)
	m.call, m.canary = c.ID, secret
	_, arguments = echo("callback")
	post(http.StatusAccepted, "/calls", `{"server":"tools","tool":"echo","arguments":`+arguments+`,"callback_url":"`+receiver+`"}`, "Prefer: respond-async")
	_, large := echo("large")
	large = large[:len(large)-2] + strings.Repeat(" ", 400<<10) + `"}`
	post(http.StatusAccepted, "/calls", `{"server":"tools","tool":"echo","arguments":`+large+`}`, "Prefer: respond-async")
	// A batch.
	lines := ""
	for i := range 4 {
		_, arguments = echo(fmt.Sprint("batch ", i))
		lines += fmt.Sprintf(`{"custom_id":"%d","server":"tools","tool":"echo","arguments":%s}`+"\n", i, arguments)
	}
	a = post(http.StatusCreated, "/batches", lines, ndjsonType)
	var b struct{ ID string }
	decode(t, a.body, &b)
	m.batch = b.ID
	// A held call that is confirmed, one that waits, and one with large arguments that waits.
	for _, kind := range []string{"confirmed", "waiting", "large and waiting"} {
		said := "hold " + y.fresh(tenant+": "+kind)
		if strings.HasPrefix(kind, "large") {
			said += strings.Repeat(" ", 10<<10)
		}
		var h heldAnswer
		decode(t, post(http.StatusAccepted, toolPath("tools", "echo"), string(asJSON(t, map[string]any{"text": said}))).body, &h)
		if kind == "confirmed" {
			post(http.StatusOK, "/confirmations/"+h.ID, `{"confirm":true}`)
		}
	}
	y.front.eventually(t, answerWithin, "the results of "+tenant, func() error {
		if s := y.status(t, m, "/calls/"+m.call); !strings.Contains(s, secret) {
			return fmt.Errorf("the durable call: %s", s)
		}
		if s := y.status(t, m, "/batches/"+m.batch); !strings.Contains(s, `"ended"`) && !strings.Contains(s, `"completed"`) {
			return fmt.Errorf("the batch: %s", s)
		}
		return nil
	})
	return m
}

func (y *encryptedFabric) status(t *testing.T, m made, path string) string {
	t.Helper()
	a, err := y.front.try("GET", path, "", m.key)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if json.Unmarshal(a.body, &plain) != nil {
		return string(a.body)
	}
	return strings.ReplaceAll(string(asJSON(t, plain)), `\u0026`, "&")
}

// TestDataOfDeletedTenantIsUnreadable makes calls of every kind for two tenants, and searches for
// their arguments and results in NATS, Redis and the logs. Then one tenant is erased:
// Callyard itself can no longer read its data, while the other one's remains.
func TestDataOfDeletedTenantIsUnreadable(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer receiver.Close()
	address, err := url.Parse(receiver.URL)
	if err != nil {
		t.Fatal(err)
	}
	y := openEncryptedFabric(t, address.Host)
	red, blue := y.everyKind(t, "red", receiver.URL+"/hook"), y.everyKind(t, "blue", receiver.URL+"/hook")
	if a := y.front.ask(t, "DELETE", "/tenants/red?confirm=blue", "", y.admin); a.status != http.StatusConflict {
		t.Errorf("without the id: %d %s", a.status, a.body)
	}
	if a := y.front.ask(t, "DELETE", "/tenants/default?confirm=default", "", y.admin); a.status != http.StatusConflict {
		t.Errorf("the default tenant: %d %s", a.status, a.body)
	}
	if a := y.front.ask(t, "DELETE", "/tenants/red?confirm=red", "", red.key); a.status != http.StatusForbidden {
		t.Errorf("by a caller of the tenant: %d %s", a.status, a.body)
	}
	begun := time.Now()
	a := y.front.ask(t, "DELETE", "/tenants/red?confirm=red", "", y.admin)
	var done struct {
		Keys, Held, Batches int
		Encrypted           bool
	}
	decode(t, a.body, &done)
	if a.status != http.StatusOK || done.Keys != 1 || done.Held != 2 || done.Batches != 1 || !done.Encrypted {
		t.Fatalf("erasing: %d %s", a.status, a.body)
	}
	t.Logf("erased in %s: %s", time.Since(begun), a.body)
	y.front.eventually(t, answerWithin, "the key to be refused", func() error {
		if a, err := y.front.try("GET", "/calls", "", red.key); err != nil || a.status != http.StatusUnauthorized {
			return fmt.Errorf("%d, %v", a.status, err)
		}
		return nil
	})
	// A new key of the same tenant reads no earlier data.
	again := red
	again.key = y.key(t, "red")
	for _, path := range []string{"/calls/" + red.call, "/batches/" + red.batch + "/results", "/calls"} {
		if s := y.status(t, again, path); strings.Contains(s, "cnry") {
			t.Errorf("%s: %.300s", path, s)
		}
	}
	if a := y.front.ask(t, "POST", toolPath("tools", "echo"), red.cached, again.key); a.status != http.StatusOK || a.header.Get("Cache-Status") != "" && strings.Contains(a.header.Get("Cache-Status"), "hit") {
		t.Errorf("a result of before is kept: %d %v", a.status, a.header)
	}
	if s := y.status(t, blue, "/calls/"+blue.call); !strings.Contains(s, blue.canary) {
		t.Errorf("the other tenant has lost its call: %s", s)
	}
	if a := y.front.ask(t, "GET", "/audit?limit=500", "", y.admin); !strings.Contains(string(a.body), "/tenants/red") {
		t.Errorf("it is not in the audit record: %.500s", a.body)
	}
	y.front.stop(t)
	y.work.stop(t)
	y.search(t, "the log of the front door", []byte(y.front.process.Out.String()), `"level":"DEBUG"`)
	y.search(t, "the log of the worker", []byte(y.work.process.Out.String()), `"level":"DEBUG"`)
	y.search(t, "Redis", everythingIn(t, y.redis), "callyard:cache:")
	y.nats.stop(t)
	y.search(t, "the files of NATS", filesIn(t, y.natsDir), "blue/key")
}
