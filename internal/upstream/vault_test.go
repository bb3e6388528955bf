package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/config"
)

// vault answers as Vault 1.x does, in the shapes of its API documentation.
type vault struct {
	*httptest.Server
	mu      sync.Mutex
	value   string // "" is a deleted version
	version int
	token   string // that it takes
	status  int    // of every answer, where it is not 0
	reads   atomic.Int32
	logins  atomic.Int32
}

func newVault(t *testing.T) *vault {
	t.Helper()
	v := &vault{value: "canary-one", version: 1, token: "hvs.canary"}
	v.Server = httptest.NewServer(v)
	t.Cleanup(v.Close)
	return v
}

func (v *vault) change(f func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f()
}

// ServeHTTP answers a read or a login.
func (v *vault) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	fault := func(status int) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"errors":["canary-of-vault %s"]}`, r.Header.Get("X-Vault-Token"))
	}
	switch {
	case v.status != 0:
		fault(v.status)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/auth/kubernetes/login":
		var m map[string]string
		if json.NewDecoder(r.Body).Decode(&m) != nil || m["role"] != "callyard" || m["jwt"] != "canary-account" {
			fault(http.StatusBadRequest)
			return
		}
		v.logins.Add(1)
		v.token = fmt.Sprint("hvs.canary-", v.logins.Load())
		fmt.Fprintf(w, `{"request_id":"1","lease_id":"","renewable":false,"lease_duration":0,"data":null,"auth":{"client_token":%q,"accessor":"a","policies":["default"],"lease_duration":3600,"renewable":true}}`, v.token)
	case r.Header.Get("X-Vault-Token") != v.token || r.Header.Get("X-Vault-Request") != "true":
		fault(http.StatusForbidden)
	case r.URL.Path != "/v1/secret/data/search":
		fault(http.StatusNotFound)
	default:
		v.reads.Add(1)
		data := fmt.Sprintf(`{"token":%q}`, v.value)
		if v.value == "" {
			data = "null"
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprintf(w, `{"request_id":"1","lease_id":"","renewable":false,"lease_duration":0,"data":{"data":%s,"metadata":{"created_time":"2026-11-26T00:00:00Z","custom_metadata":null,"deletion_time":"","destroyed":false,"version":%d}},"auth":null}`, data, v.version)
	}
}

// inVault is a server whose credential is in Vault.
func inVault(t *testing.T, v *vault, change func(c *config.Vault)) *static {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, "hvs.canary\n")
	c := &config.Vault{Address: v.URL, Path: "secret/data/search", Field: "token", TokenFile: file}
	if change != nil {
		change(c)
	}
	s := newStatic("s", &config.Auth{Mode: config.AuthStatic, Header: "Authorization", Scheme: "Bearer", Value: config.Secret{Vault: c}})
	t.Cleanup(s.CloseIdleConnections)
	return s
}

func sends(t *testing.T, s *static, want string) {
	t.Helper()
	h := http.Header{}
	if err := s.Authorize(t.Context(), h); err != nil || h.Get("Authorization") != "Bearer "+want {
		t.Errorf("it sends %q, %v; want %q", h.Get("Authorization"), err, want)
	}
}

func old(s *static) {
	v := s.value.(*vaultSecret)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.checked = v.checked.Add(-vaultRecheck)
}

func TestASecretIsReadFromVaultOnceAndAgainWhenItIsOldOrRefused(t *testing.T) {
	v := newVault(t)
	s := inVault(t, v, nil)
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() { sends(t, s, "canary-one") })
	}
	calls.Wait()
	if n := v.reads.Load(); n != 1 {
		t.Errorf("%d reads", n)
	}
	v.change(func() { v.value, v.version = "canary-two", 2 })
	sends(t, s, "canary-one")
	old(s)
	sends(t, s, "canary-two")
	// The server refuses it because there is a new version: no call fails.
	v.change(func() { v.value, v.version = "canary-three", 3 })
	m := newMCP(t, func(value string) bool { return value == "Bearer canary-three" })
	if status, err := call(t, m.URL, s); status != http.StatusOK || err != nil {
		t.Errorf("%d, %v", status, err)
	}
}

func TestWhileVaultIsAwayTheLastSecretIsUsedAndADeletedOneIsNot(t *testing.T) {
	v := newVault(t)
	s := inVault(t, v, nil)
	sends(t, s, "canary-one")
	for _, status := range []int{403, 429, 500, 503} {
		v.change(func() { v.status = status })
		old(s)
		sends(t, s, "canary-one")
	}
	v.change(func() { v.status, v.value = 0, "" })
	old(s)
	h := http.Header{}
	if err := s.Authorize(t.Context(), h); err == nil || len(h) != 0 || strings.Contains(err.Error(), "canary") {
		t.Errorf("a deleted secret: %v, %v", h, err)
	}
	v.change(func() { v.value = "canary-back" })
	sends(t, s, "canary-back")
}

func TestAFaultOfVaultEndsTheCallAndRepeatsNothing(t *testing.T) {
	v := newVault(t)
	for what, change := range map[string]func(c *config.Vault){
		"another path":        func(c *config.Vault) { c.Path = "secret/data/none" },
		"another field":       func(c *config.Vault) { c.Field = "none" },
		"no token":            func(c *config.Vault) { c.TokenFile += ".none" },
		"an unknown role":     func(c *config.Vault) { c.KubernetesRole = "else" },
		"nobody at the place": func(c *config.Vault) { c.Address = "http://127.0.0.1:1" },
	} {
		h := http.Header{}
		if err := inVault(t, v, change).Authorize(t.Context(), h); err == nil || len(h) != 0 || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, %v", what, h, err)
		}
	}
	var strayed atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	defer other.Close()
	moved := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer moved.Close()
	if err := inVault(t, v, func(c *config.Vault) { c.Address = moved.URL }).Authorize(t.Context(), http.Header{}); err == nil || strayed.Load() != 0 {
		t.Errorf("a redirect: %v, %d requests", err, strayed.Load())
	}
}

func TestALoginWithAServiceAccountIsKeptAndRepeatedWhenItsTokenEnds(t *testing.T) {
	v := newVault(t)
	account := filepath.Join(t.TempDir(), "account")
	write(t, account, "canary-account")
	s := inVault(t, v, func(c *config.Vault) { c.KubernetesRole, c.TokenFile = "callyard", account })
	sends(t, s, "canary-one")
	old(s)
	sends(t, s, "canary-one")
	if n := v.logins.Load(); n != 1 {
		t.Errorf("%d logins for two reads", n)
	}
	v.change(func() { v.token, v.value = "revoked", "canary-two" })
	old(s)
	sends(t, s, "canary-two")
	s.value.(*vaultSecret).until = time.Now()
	old(s)
	sends(t, s, "canary-two")
	if n := v.logins.Load(); n != 3 {
		t.Errorf("%d logins", n)
	}
}

func FuzzReadVault(f *testing.F) {
	f.Add([]byte(`{"data":{"data":{"token":"x"},"metadata":{"version":1}}}`))
	f.Add([]byte(`{"data":{"token":"x"}}`))
	f.Add([]byte(`{"data":{"data":null,"metadata":{}}}`))
	f.Add([]byte(`{"data":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if text, err := readVault(body, "token"); err == nil && (text == "" || len(text) > maxSecret) {
			t.Errorf("%q is read from %q", text, body)
		}
	})
}
