package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// accounts is an MCP server that answers each call with the account of its key. It lists its tools
// to every client.
type accounts struct {
	*httptest.Server
	mu    sync.Mutex
	keys  map[string]string // accounts by key
	calls int
	opens map[string]int // sessions by key
	moved int            // status of a redirect of all requests with a key; 0 means none
	to    string         // its target
	begun chan struct{}  // signaled when a slow call runs
	hold  chan struct{}  // ends it
}

func newAccounts(t *testing.T) *accounts {
	t.Helper()
	a := &accounts{keys: map[string]string{}, opens: map[string]int{}, begun: make(chan struct{}, 1), hold: make(chan struct{})}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

// ServeHTTP answers one message.
func (a *accounts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if r.Method != http.MethodPost || json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	answer := func(result string) { fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result) }
	key := r.Header.Get("X-Api-Key")
	if strings.Contains(string(body), `"slow":true`) {
		a.begun <- struct{}{}
		select {
		case <-a.hold:
		case <-r.Context().Done():
			return
		}
		answer(`{"resultType":"complete","content":[{"type":"text","text":"slow"}]}`)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.moved != 0 && key != "" {
		http.Redirect(w, r, a.to, a.moved)
		return
	}
	if _, known := a.keys[key]; key != "" && !known {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	switch m.Method {
	case "server/discover":
		a.opens[key]++
		answer(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
	case "tools/list":
		answer(`{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"whoami","inputSchema":{"type":"object"}}]}`)
	case "tools/call":
		if key == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		a.calls++
		answer(fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":%q}]}`, a.keys[key]))
	default:
		answer(`{}`)
	}
}

func (a *accounts) set(key, account string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys[key] = account
}

func (a *accounts) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls
}

// personalFront is a front door with credentials of people.
func personalFront(t *testing.T, srv *bustest.Server, keys *credential.Keys, address string) (*dispatch.Router, *catalog.Catalog, *credential.Book) {
	t.Helper()
	conn := srv.Connect(t, "front")
	book, err := credential.Open(t.Context(), conn, keys, nil, []*credential.Server{{ID: "accounts", URL: address, Header: "X-Api-Key"}}, "https://callyard.example", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	id := schema.NewID("router")
	r, err := dispatch.New(conn, id, dispatch.Options{Credentials: book}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Open(t.Context(), conn, r, id, catalog.Finding{}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		_ = r.Close()
	})
	return r, c, book
}

// of returns the person's name in the book.
func of(owner string) string { return credential.Person(&schema.Principal{Owner: owner}) }

func whoami(ctx context.Context, r *dispatch.Router, person string) (string, error) {
	res, err := r.Do(ctx, &schema.Call{
		ID: schema.NewCallID(), Server: "accounts", Tool: "whoami", Arguments: []byte(`{}`), Timeout: 20 * time.Second, Principal: schema.Principal{Name: "key of " + person, Owner: person},
	})
	if err != nil {
		return "", err
	}
	var body struct{ Content []struct{ Text string } }
	if json.Unmarshal(res.Body, &body) != nil || len(body.Content) != 1 {
		return "", fmt.Errorf("answered %s", res.Body)
	}
	return body.Content[0].Text, nil
}

func userEntry(address string) config.ServerEntry {
	return config.ServerEntry{ID: "accounts", Type: config.TypeHTTP, URL: address, Auth: &config.Auth{Mode: config.AuthUser, Header: "Authorization"}}
}

// TestEveryCallUsesItsPersonsCredential has many people behind several front
// doors that call one server concurrently.
func TestEveryCallUsesItsPersonsCredential(t *testing.T) {
	const people, each = 40, 10
	srv, mcp := bustest.Start(t), newAccounts(t)
	keys, err := credential.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	w := start(t, srv, "w", false, userEntry(mcp.URL+"/mcp"))
	defer stop(t, w)
	var fronts []*dispatch.Router
	var book *credential.Book
	for range 3 {
		r, c, b := personalFront(t, srv, keys, mcp.URL+"/mcp")
		await(t, c, "accounts is ready", hasTools(c, "accounts"))
		fronts, book = append(fronts, r), b
	}
	for i := range people {
		person := fmt.Sprint("person", i)
		mcp.set("canary-"+person, person)
		if err := book.SetSecret(t.Context(), "accounts", of(person), "canary-"+person); err != nil {
			t.Fatal(err)
		}
	}
	var calls sync.WaitGroup
	for i := range people {
		calls.Go(func() {
			person := fmt.Sprint("person", i)
			for n := range each {
				if got, err := whoami(t.Context(), fronts[(i+n)%len(fronts)], person); got != person || err != nil {
					t.Errorf("%s is %q, %v", person, got, err)
				}
			}
		})
	}
	calls.Wait()
	if n := mcp.count(); n != people*each {
		t.Errorf("the server ran %d calls, not %d", n, people*each)
	}
}

// connectedAda is a server with a worker and a front door, where ada is connected with the key
// canary-ada.
func connectedAda(t *testing.T) (*accounts, *dispatch.Router, *credential.Book) {
	t.Helper()
	srv, mcp := bustest.Start(t), newAccounts(t)
	keys, err := credential.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	w := start(t, srv, "w", false, userEntry(mcp.URL+"/mcp"))
	t.Cleanup(func() { stop(t, w) })
	r, c, book := personalFront(t, srv, keys, mcp.URL+"/mcp")
	await(t, c, "accounts is ready", hasTools(c, "accounts"))
	mcp.set("canary-ada", "ada")
	if err := book.SetSecret(t.Context(), "accounts", of("ada"), "canary-ada"); err != nil {
		t.Fatal(err)
	}
	return mcp, r, book
}

func TestACallWithoutACredentialAsksToConnectAndDoesNotRun(t *testing.T) {
	mcp, r, book := connectedAda(t)
	if got, err := whoami(t.Context(), r, "ada"); got != "ada" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	asked := func(what, person string) {
		t.Helper()
		before := mcp.count()
		_, err := whoami(t.Context(), r, person)
		var e *schema.Error
		if !errors.As(err, &e) || e.Kind != schema.KindConnectRequired || !strings.HasPrefix(e.ConnectURL, "https://callyard.example/connect") || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", what, err)
		}
		if mcp.count() != before {
			t.Errorf("%s: the tool ran", what)
		}
	}
	asked("somebody else", "bob")
	// The person gets another key at the server, which revokes the old one.
	mcp.set("canary-new", "ada again")
	if err := book.SetSecret(t.Context(), "accounts", of("ada"), "canary-new"); err != nil {
		t.Fatal(err)
	}
	if got, err := whoami(t.Context(), r, "ada"); got != "ada again" || err != nil {
		t.Errorf("with another key: %q, %v", got, err)
	}
	mcp.mu.Lock()
	delete(mcp.keys, "canary-new")
	mcp.mu.Unlock()
	asked("a key that the server refuses", "ada")
	mcp.set("canary-new", "ada")
	if err := book.Disconnect(t.Context(), "accounts", of("ada")); err != nil {
		t.Fatal(err)
	}
	asked("after disconnecting", "ada")
}

func TestACredentialIsNotSentToAServerThatMoved(t *testing.T) {
	srv, mcp, thief := bustest.Start(t), newAccounts(t), newAccounts(t)
	keys, err := credential.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	w := start(t, srv, "w", false, userEntry(thief.URL+"/mcp"))
	defer stop(t, w)
	r, c, book := personalFront(t, srv, keys, mcp.URL+"/mcp")
	await(t, c, "accounts is ready", hasTools(c, "accounts"))
	if err := book.SetSecret(t.Context(), "accounts", of("ada"), "canary-ada"); err != nil {
		t.Fatal(err)
	}
	if _, err := whoami(t.Context(), r, "ada"); schema.KindOf(err) != schema.KindServerFailed || thief.count() != 0 {
		t.Errorf("%v, %d calls", err, thief.count())
	}
}

// TestRefusedRequestDoesNotEndOtherCalls revokes a key at the server while a call that the
// server accepted with it is running.
func TestRefusedRequestDoesNotEndOtherCalls(t *testing.T) {
	mcp, r, _ := connectedAda(t)
	ended := make(chan error, 1)
	go func() {
		_, err := r.Do(t.Context(), &schema.Call{
			ID: schema.NewCallID(), Server: "accounts", Tool: "whoami", Arguments: []byte(`{"slow":true}`), Timeout: 20 * time.Second, Principal: schema.Principal{Name: "key of ada", Owner: "ada"},
		})
		ended <- err
	}()
	select {
	case <-mcp.begun:
	case err := <-ended:
		t.Fatalf("the slow call did not begin: %v", err)
	}
	mcp.mu.Lock()
	delete(mcp.keys, "canary-ada")
	mcp.mu.Unlock()
	if _, err := whoami(t.Context(), r, "ada"); schema.KindOf(err) != schema.KindConnectRequired {
		t.Errorf("with the key that ended: %v", err)
	}
	select { // still running after several checks of waiting calls
	case err := <-ended:
		t.Errorf("the running call ended: %v", err)
		return
	case <-time.After(300 * time.Millisecond):
	}
	close(mcp.hold)
	if err := <-ended; err != nil {
		t.Errorf("the running call: %v", err)
	}
}

// TestPersonalCredentialIsNotSentToRedirectTargets has a server that redirects every request of a person
// after it has listed its tools.
func TestPersonalCredentialIsNotSentToRedirectTargets(t *testing.T) {
	mcp, r, _ := connectedAda(t)
	var strayed atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	defer thief.Close()
	if got, err := whoami(t.Context(), r, "ada"); got != "ada" || err != nil {
		t.Errorf("without a redirect: %q, %v", got, err)
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		mcp.away(status, thief.URL)
		if got, err := whoami(t.Context(), r, "ada"); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("a redirect %d: %q, %v", status, got, err)
		}
	}
	if n := strayed.Load(); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}

// away redirects all requests with a key.
func (a *accounts) away(status int, to string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.moved, a.to = status, to
}
