package e2e

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callyard/callyard/pkg/bus/porttest"
)

// member is a person of a tenant, with a credential at a server and an access token for a
// program.
type member struct {
	*issuing
	owner, header   string // header carries an API key
	access, refresh string
}

// erasable holds the processes, and external services.
type erasable struct {
	*canaries
	nats            *natsProcess
	natsDir         string
	front, approver *door
	work            *workerProcess
	accounts        *digester
	issuer          string
}

func openErasable(t *testing.T) *erasable {
	t.Helper()
	y := &erasable{canaries: newCanaries(), natsDir: t.TempDir()}
	y.nats = startNATS(t, y.natsDir)
	y.accounts = startDigester(t, "X-Api-Key", func(string) bool { return true })
	listen, approver := porttest.Address(t), porttest.Address(t)
	y.issuer = "http://" + approver
	raw := make([]byte, 32)
	_, _ = rand.Read(raw)
	keys := filepath.Join(t.TempDir(), "keys")
	write(t, keys, base64.StdEncoding.EncodeToString(raw)+"\n")
	shared := fmt.Sprintf(`
encryption: {key_file: %[1]s}
credentials:
  key_file: %[1]s
  servers: [{name: accounts, url: %[2]q, kind: header, header: X-Api-Key}]
front_door:
  drain_delay: 1ms
  public_url: "http://%[3]s"
  keys: [{name: admin, hash: %[4]q}]
  issuers: [{name: people, issuer: %[5]q, claims: {owner: owner, tenant: "urn:callyard:tenant"}}]
approver:
  drain_delay: 1ms
  listen: %[6]q
  public_url: %[5]q
  keys:
    - {name: red/ada, owner: ada, tenant: red, hash: %[7]q}
    - {name: blue/ada, owner: ada, tenant: blue, hash: %[8]q}
  authorization_server: {enabled: true, clients: [{id: app, name: App, redirect_uris: ["http://127.0.0.1:9/callback"]}]}
`, keys, y.accounts.URL+"/mcp", listen, hashOf("admin"), y.issuer, approver, hashOf("ada of red"), hashOf("ada of blue"))
	file := serversFile(t, nil)
	write(t, file, fmt.Sprintf(`{"mcpServers": {"accounts": {"url": %q, "auth": {"mode": "user"}}}}`, y.accounts.URL+"/mcp"))
	y.work = startWorker(t, setup{nats: y.nats.url, servers: file, env: []string{"CALLYARD_LOG_LEVEL=debug"}})
	y.front = startFrontDoor(t, setup{nats: y.nats.url, listen: listen, config: shared, env: []string{"CALLYARD_LOG_LEVEL=debug"}})
	y.approver = startApprover(t, setup{nats: y.nats.url, listen: approver, config: shared, env: []string{"CALLYARD_LOG_LEVEL=debug"}})
	y.front.eventually(t, startWithin, "the server", func() error {
		if a, err := y.front.try("GET", "/servers/accounts/tools", "", "X-API-Key: admin"); err != nil || a.status != http.StatusOK {
			return fmt.Errorf("%d, %v", a.status, err)
		}
		return nil
	})
	return y
}

// join signs a person of a tenant in, stores a secret for them, and gives a program access.
func (y *erasable) join(t *testing.T, tenant string) *member {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &member{issuing: &issuing{door: y.front, issuer: y.issuer, person: &http.Client{Jar: jar, Transport: &http.Transport{}}}, owner: "ada"}
	t.Cleanup(m.person.CloseIdleConnections)
	fill := func(page, action, name, value string) {
		t.Helper()
		form := fields(m.page(t, m.person.Get, y.issuer+page), action)
		form.Set(name, value)
		m.page(t, func(to string) (*http.Response, error) { return m.person.PostForm(to, form) }, y.issuer+action)
	}
	fill("/sign-in", "/sign-in", "key", "ada of "+tenant)
	m.key(t, y, tenant)
	fill("/connect", "/connect/key", "key", y.fresh(tenant+": credential"))
	if digest, status := m.call(t); status != http.StatusOK {
		t.Fatalf("%s: %d %s", tenant, status, digest)
	}
	m.grant(t)
	return m
}

// key creates an API key for the person.
func (m *member) key(t *testing.T, y *erasable, tenant string) {
	t.Helper()
	a := y.front.ask(t, "POST", "/keys", fmt.Sprintf(`{"name":"%s/key","owner":%q,"tenant":%q,"scopes":["tools:read","tools:call"]}`, tenant, m.owner, tenant), "X-API-Key: admin")
	var k madeKey
	if decode(t, a.body, &k); a.status != http.StatusCreated {
		t.Fatalf("%d %s", a.status, a.body)
	}
	m.header = "X-API-Key: " + k.Secret
}

// call makes a call as the person, and returns the server's answer.
func (m *member) call(t *testing.T) (body string, status int) {
	t.Helper()
	a, err := m.door.tryCall("accounts", "digest", `{}`, m.header)
	if err != nil {
		t.Fatal(err)
	}
	return string(a.body), a.status
}

// grant gives a program access, which gets its tokens.
func (m *member) grant(t *testing.T) {
	t.Helper()
	const redirect, verifier, challenge = "http://127.0.0.1:9/callback", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	ask := url.Values{"response_type": {"code"}, "client_id": {"app"}, "redirect_uri": {redirect}, "scope": {"tools:read tools:call"}, "resource": {m.door.url + "/mcp"}, "code_challenge": {challenge}, "code_challenge_method": {"S256"}, "state": {"s"}}
	led, err := url.Parse(m.agree(t, m.issuer+"/oauth/authorize?"+ask.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	status := m.tokens(t, url.Values{"grant_type": {"authorization_code"}, "client_id": {"app"}, "code": {led.Query().Get("code")}, "redirect_uri": {redirect}, "code_verifier": {verifier}})
	if status != http.StatusOK || m.refresh == "" {
		t.Fatalf("no tokens: %d", status)
	}
}

// tokens requests tokens, and stores them.
func (m *member) tokens(t *testing.T, form url.Values) (status int) {
	t.Helper()
	resp, err := m.person.PostForm(m.issuer+"/oauth/token", form)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	if json.NewDecoder(resp.Body).Decode(&got) == nil && got.Access != "" {
		m.access, m.refresh = got.Access, got.Refresh
	}
	return resp.StatusCode
}

func (m *member) renew(t *testing.T) (status int) {
	t.Helper()
	return m.tokens(t, url.Values{"grant_type": {"refresh_token"}, "client_id": {"app"}, "refresh_token": {m.refresh}})
}

// initialize sends a request to the MCP endpoint with the access token.
func (m *member) initialize(t *testing.T) (status int) {
	t.Helper()
	return m.door.ask(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		"Authorization: Bearer "+m.access, "Accept: application/json, text/event-stream").status
}

// stored returns the numbers of rows of credentials and of grants.
func (y *erasable) stored(t *testing.T) (credentials, grants int) {
	t.Helper()
	conn, err := nats.Connect(y.nats.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	for bucket, count := range map[string]*int{"callyard_credentials": &credentials, "callyard_oauth_grants": &grants} {
		rows, err := js.KeyValue(t.Context(), bucket)
		if err != nil {
			t.Fatal(err)
		}
		keys, err := rows.ListKeys(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range keys.Keys() {
			*count++
		}
	}
	return credentials, grants
}

// TestCredentialsAndGrantsOfDeletedTenantAreDeleted has two people with the same name in two
// tenants, each with a credential at an MCP server and a program with access. One
// tenant is erased while an approver runs.
func TestCredentialsAndGrantsOfDeletedTenantAreDeleted(t *testing.T) {
	t.Parallel()
	y := openErasable(t)
	red, blue := y.join(t, "red"), y.join(t, "blue")
	if a, b := y.stored(t); a != 2 || b != 2 {
		t.Fatalf("%d credentials, %d grants", a, b)
	}
	for name, m := range map[string]*member{"red": red, "blue": blue} {
		if status := m.initialize(t); status != http.StatusOK {
			t.Fatalf("%s: the access token is answered with %d", name, status)
		}
	}
	one, _ := red.call(t)
	if two, _ := blue.call(t); one == two {
		t.Errorf("both people have one credential: %s", one)
	}
	a := y.front.ask(t, "DELETE", "/tenants/red?confirm=red", "", "X-API-Key: admin")
	var done struct{ Keys, Credentials int }
	if decode(t, a.body, &done); a.status != http.StatusOK || done.Keys != 1 || done.Credentials != 1 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	y.front.eventually(t, answerWithin, "the end of the grant", func() error {
		if a, b := y.stored(t); a != 1 || b != 1 {
			return fmt.Errorf("%d credentials, %d grants", a, b)
		}
		if status := red.initialize(t); status != http.StatusUnauthorized {
			return fmt.Errorf("the access token is answered with %d", status)
		}
		return nil
	})
	if status := red.renew(t); status != http.StatusBadRequest {
		t.Errorf("the refresh token is answered with %d", status)
	}
	// The same person, with a new key.
	red.key(t, y, "red")
	if body, status := red.call(t); status != http.StatusConflict {
		t.Errorf("a call that needs the credential: %d %s", status, body)
	}
	if body, status := blue.call(t); status != http.StatusOK {
		t.Errorf("the other tenant's call: %d %s", status, body)
	}
	if status := blue.renew(t); status != http.StatusOK {
		t.Errorf("the other tenant's refresh token: %d", status)
	}
	y.approver.stop(t)
	y.front.stop(t)
	y.work.stop(t)
	y.search(t, "the log of the front door", []byte(y.front.process.Out.String()), `"level":"DEBUG"`)
	y.search(t, "the log of the approver", []byte(y.approver.process.Out.String()), "the access of a program has ended")
	y.search(t, "the log of the worker", []byte(y.work.process.Out.String()), `"level":"DEBUG"`)
	y.nats.stop(t)
	y.search(t, "the files of NATS", filesIn(t, y.natsDir), "callyard_credentials")
}
