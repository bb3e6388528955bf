package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/upstream/oauth"
	"github.com/callyard/callyard/internal/upstream/oauth/oauthtest"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// digester is an MCP server that returns the digest of the credential of each caller.
// It lists its tools without credentials, and quotes a refused credential in its answer, as
// hostile servers may.
type digester struct {
	*httptest.Server
	header string
	takes  func(value string) bool
	issuer string // of accepted tokens; "" if it uses other credentials

	mu   sync.Mutex
	seen map[string]int // calls by digest
}

// startDigester starts a digester. takes reports whether a value of the header is valid.
func startDigester(t testing.TB, header string, takes func(value string) bool) *digester {
	t.Helper()
	s := &digester{header: header, takes: takes, seen: map[string]int{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// digestOf identifies a credential without revealing it.
func digestOf(value string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(value)))[:16] }

// ServeHTTP answers one message, or a request for the server's metadata.
func (s *digester) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if s.issuer != "" && strings.HasPrefix(r.URL.Path, "/.well-known/") {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.issuer}})
		return
	}
	if r.Method != http.MethodPost || json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	value := r.Header.Get(s.header)
	if m.Method == "tools/call" && value == "" || value != "" && !s.takes(value) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":"the credential %s is not valid"}`, value)
		return
	}
	if bytes.Contains(body, []byte("please fail")) {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "fault with %s", value)
		return
	}
	result := `{}`
	switch m.Method {
	case "server/discover":
		result = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
	case "tools/list":
		result = `{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"digest","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		digest := digestOf(value)
		s.mu.Lock()
		s.seen[digest]++
		s.mu.Unlock()
		result = fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":%q}]}`, digest)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// personalFabric is a fabric with a server at which every person has a separate grant.
type personalFabric struct {
	as      *oauthtest.Server
	crm     *digester
	nats    *natsProcess
	natsDir string
	keyFile string // with the encryption key of the credentials
	keyText string // the content of keyFile
	section string // of the configuration
	client  *oauth.Client

	crmServer *credential.Server
	book      *credential.Book // to write what an approver would write
}

// openPeople starts NATS and the external services, and opens the credentials table
// like an approver.
func openPeople(t testing.TB, secret string) *personalFabric {
	t.Helper()
	p := &personalFabric{as: oauthtest.New(t), natsDir: t.TempDir()}
	p.crm = startDigester(t, "Authorization", func(v string) bool { return p.as.Takes(strings.TrimPrefix(v, "Bearer ")) })
	p.crm.issuer = p.as.URL
	p.as.AddClient("callyard", secret)
	p.nats = startNATS(t, p.natsDir)
	dir := t.TempDir()
	raw := make([]byte, 32)
	_, _ = rand.Read(raw)
	p.keyText = base64.StdEncoding.EncodeToString(raw)
	write(t, filepath.Join(dir, "keys"), p.keyText)
	write(t, filepath.Join(dir, "client"), secret)
	p.section = fmt.Sprintf(`
credentials:
  key_file: %s
  connect_url: http://127.0.0.1:9
  servers:
    - {name: crm, url: %s/mcp, kind: oauth, issuer: %s, client_id: callyard, client_secret_file: %s}
`, filepath.Join(dir, "keys"), p.crm.URL, p.as.URL, filepath.Join(dir, "client"))
	p.keyFile = filepath.Join(dir, "keys")
	p.client = &oauth.Client{ID: "callyard", Issuer: p.as.URL, Secret: func() (string, error) { return secret, nil }, RedirectURL: "http://127.0.0.1:9/connect/callback/crm", HTTP: oauth.NewHTTPClient(p.crm.URL, p.as.URL)}
	p.crmServer = &credential.Server{ID: "crm", URL: p.crm.URL + "/mcp", Header: "Authorization", Scheme: "Bearer", OAuth: p.client}
	p.reopen(t, p.keyFile, p.crmServer)
	return p
}

// reopen opens the table of credentials for the servers.
func (p *personalFabric) reopen(t testing.TB, keyFile string, servers ...*credential.Server) {
	t.Helper()
	keys, err := credential.LoadKeys(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := bus.Connect(t.Context(), bus.Options{Name: "test", URL: p.nats.url, Provision: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if p.book, err = credential.Open(t.Context(), conn, keys, nil, servers, "http://127.0.0.1:9", slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.book.Close)
}

// keyServer returns a server at which people have API keys.
func keyServer(name schema.ServerID, address, header string) *credential.Server {
	return &credential.Server{ID: name, URL: address, Header: header}
}

// personOf returns the person's key in the table.
func personOf(owner string) string { return credential.Person(&schema.Principal{Owner: owner}) }

// connect connects a person to crm.
func (p *personalFabric) connect(t testing.TB, owner string) {
	t.Helper()
	p.as.SignIn(owner)
	req, err := p.book.Begin(t.Context(), "crm")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.book.Finish(t.Context(), "crm", personOf(owner), req, oauthtest.Agree(t, req.URL)); err != nil {
		t.Fatal(err)
	}
}

// ownersKeys is the section front_door with a key for each owner, whose text is the owner's name.
func ownersKeys(owners []string) string {
	text := "front_door:\n  drain_delay: 1ms\n  keys:\n"
	for _, o := range owners {
		text += fmt.Sprintf("    - {name: key-%s, owner: %s, hash: %q}\n", o, o, hashOf("key of "+o))
	}
	return text
}
