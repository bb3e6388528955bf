package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	// Of AppRole: the secret id that it takes, the seconds that a token and a renewal live, and
	// whether tokens can be renewed.
	secretID       string
	lease, renewed int
	renewable      bool
	renewals       atomic.Int32
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
	case r.Method == http.MethodPost && r.URL.Path == "/v1/auth/approle/login":
		v.appRole(w, r, fault)
	case r.Header.Get("X-Vault-Token") != v.token || r.Header.Get("X-Vault-Request") != "true":
		fault(http.StatusForbidden)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/auth/token/renew-self":
		if !v.renewable {
			fault(http.StatusBadRequest) // "lease is not renewable"
			return
		}
		v.renewals.Add(1)
		v.authenticates(w, v.renewed)
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

// appRole answers a login with AppRole, as auth/approle/login is documented: 400 to a wrong role
// id or secret id, and no token is needed.
func (v *vault) appRole(w http.ResponseWriter, r *http.Request, fault func(int)) {
	var m map[string]string
	if json.NewDecoder(r.Body).Decode(&m) != nil || len(m) != 2 || m["role_id"] != "role-1" || m["secret_id"] != v.secretID || r.Header.Get("X-Vault-Token") != "" {
		fault(http.StatusBadRequest)
		return
	}
	v.token = fmt.Sprint("hvs.canary-approle-", v.logins.Add(1))
	v.authenticates(w, v.lease)
}

// authenticates writes the answer of a login, or of a renewal.
func (v *vault) authenticates(w http.ResponseWriter, lease int) {
	fmt.Fprintf(w, `{"request_id":"1","lease_id":"","renewable":false,"lease_duration":0,"data":null,"wrap_info":null,"warnings":null,"auth":{"client_token":%q,"accessor":"a","policies":["default"],"token_policies":["default"],"metadata":{"role_name":"callyard"},"lease_duration":%d,"renewable":%t,"entity_id":"e","token_type":"service","orphan":true,"num_uses":0}}`, v.token, lease, v.renewable)
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

func checkSends(t *testing.T, s *static, want string) {
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

func TestVaultSecretIsRereadWhenOldOrRefused(t *testing.T) {
	v := newVault(t)
	s := inVault(t, v, nil)
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() { checkSends(t, s, "canary-one") })
	}
	calls.Wait()
	if n := v.reads.Load(); n != 1 {
		t.Errorf("%d reads", n)
	}
	v.change(func() { v.value, v.version = "canary-two", 2 })
	checkSends(t, s, "canary-one")
	old(s)
	checkSends(t, s, "canary-two")
	// The server refuses it because there is a new version: no call fails.
	v.change(func() { v.value, v.version = "canary-three", 3 })
	m := newMCP(t, func(value string) bool { return value == "Bearer canary-three" })
	if status, err := call(t, m.URL, s); status != http.StatusOK || err != nil {
		t.Errorf("%d, %v", status, err)
	}
}

func TestLastSecretIsUsedDuringVaultOutageUnlessDeleted(t *testing.T) {
	v := newVault(t)
	s := inVault(t, v, nil)
	checkSends(t, s, "canary-one")
	for _, status := range []int{403, 429, 500, 503} {
		v.change(func() { v.status = status })
		old(s)
		checkSends(t, s, "canary-one")
	}
	v.change(func() { v.status, v.value = 0, "" })
	old(s)
	h := http.Header{}
	if err := s.Authorize(t.Context(), h); err == nil || len(h) != 0 || strings.Contains(err.Error(), "canary") {
		t.Errorf("a deleted secret: %v, %v", h, err)
	}
	v.change(func() { v.value = "canary-back" })
	checkSends(t, s, "canary-back")
}

func TestVaultErrorFailsTheCallWithoutRevealingSecrets(t *testing.T) {
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

func TestServiceAccountLoginIsRepeatedWhenItsTokenEnds(t *testing.T) {
	v := newVault(t)
	account := filepath.Join(t.TempDir(), "account")
	write(t, account, "canary-account")
	s := inVault(t, v, func(c *config.Vault) { c.KubernetesRole, c.TokenFile = "callyard", account })
	checkSends(t, s, "canary-one")
	old(s)
	checkSends(t, s, "canary-one")
	if n := v.logins.Load(); n != 1 {
		t.Errorf("%d logins for two reads", n)
	}
	v.change(func() { v.token, v.value = "revoked", "canary-two" })
	old(s)
	checkSends(t, s, "canary-two")
	s.value.(*vaultSecret).login.until = time.Now()
	old(s)
	checkSends(t, s, "canary-two")
	if n := v.logins.Load(); n != 3 {
		t.Errorf("%d logins", n)
	}
}

// withAppRole is a server whose credential is read after a login with AppRole.
func withAppRole(t *testing.T, v *vault) (s *static, secretID string) {
	t.Helper()
	v.change(func() { v.secretID, v.lease, v.renewed, v.renewable = "canary-id", 3600, 3600, true })
	secretID = filepath.Join(t.TempDir(), "secret-id")
	write(t, secretID, "canary-id\n")
	return inVault(t, v, func(c *config.Vault) { c.TokenFile, c.RoleID, c.SecretIDFile = "", "role-1", secretID }), secretID
}

// due says that two thirds of the life of the token have passed.
func due(s *static) {
	s.value.(*vaultSecret).login.until = time.Now()
	old(s)
}

func TestAppRoleLoginIsRenewedBeforeItEnds(t *testing.T) {
	v := newVault(t)
	s, secretID := withAppRole(t, v)
	count := func(what string, logins, renewals int32) {
		t.Helper()
		if l, r := v.logins.Load(), v.renewals.Load(); l != logins || r != renewals {
			t.Errorf("%s: %d logins and %d renewals, want %d and %d", what, l, r, logins, renewals)
		}
	}
	checkSends(t, s, "canary-one")
	old(s)
	checkSends(t, s, "canary-one")
	count("two reads", 1, 0)
	if left := time.Until(s.value.(*vaultSecret).login.until); left > 40*time.Minute || left < 39*time.Minute {
		t.Errorf("the token is renewed after %s", left)
	}
	due(s)
	checkSends(t, s, "canary-one")
	count("when it is due", 1, 1)
	// The longest life of the token is nearly over.
	v.change(func() { v.renewed = 60 })
	due(s)
	checkSends(t, s, "canary-one")
	count("a short renewal", 2, 2)
	v.change(func() { v.renewable = false })
	due(s)
	checkSends(t, s, "canary-one")
	count("no renewal", 3, 2)
	due(s)
	checkSends(t, s, "canary-one")
	count("a token that says so", 4, 2)
	// 403: one more login, with the secret id that is in the file now.
	v.change(func() { v.token, v.value, v.secretID = "revoked", "canary-two", "canary-new" })
	write(t, secretID, "canary-new")
	old(s)
	checkSends(t, s, "canary-two")
	count("after 403", 5, 2)
}

func TestRefusedAppRoleIsTriedOnceAndReportedWithoutSecret(t *testing.T) {
	v := newVault(t)
	s, _ := withAppRole(t, v)
	v.change(func() { v.secretID = "another" })
	h := http.Header{}
	if err := s.Authorize(t.Context(), h); err == nil || len(h) != 0 || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "auth/approle/login failed with HTTP status 400") {
		t.Errorf("%v, %v", h, err)
	}
	// A policy that does not allow the path: 403 also after the login.
	v.change(func() { v.secretID = "canary-id" })
	forbidding := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/secret/data/search" {
			v.reads.Add(1)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		v.ServeHTTP(w, r)
	}))
	defer forbidding.Close()
	s.value.(*vaultSecret).c.Address = forbidding.URL
	if err := s.Authorize(t.Context(), h); err == nil || v.logins.Load() != 2 || v.reads.Load() != 2 {
		t.Errorf("%v; %d logins and %d reads, want one more of each", err, v.logins.Load(), v.reads.Load())
	}
}

func TestTheSecretIDOfAnAppRoleCanBeInTheEnvironment(t *testing.T) {
	v := newVault(t)
	v.change(func() { v.secretID, v.lease = "canary-id", 3600 })
	t.Setenv("TEST_VAULT_SECRET_ID", "canary-id")
	s := inVault(t, v, func(c *config.Vault) { c.TokenFile, c.RoleID, c.SecretIDEnv = "", "role-1", "TEST_VAULT_SECRET_ID" })
	checkSends(t, s, "canary-one")
	t.Setenv("TEST_VAULT_SECRET_ID", "")
	h := http.Header{}
	if err := inVault(t, v, func(c *config.Vault) { c.TokenFile, c.RoleID, c.SecretIDEnv = "", "role-1", "TEST_VAULT_SECRET_ID" }).Authorize(t.Context(), h); err == nil || len(h) != 0 {
		t.Errorf("without the variable: %v", err)
	}
}

// hanging is a Vault that answers nothing.
type hanging struct{ requests atomic.Int32 }

func (h *hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	h.requests.Add(1)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestCallsWaitTogetherForAVaultThatHangs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, "hvs.canary\n")
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{}
		s := newVaultSecret(&config.Vault{Address: "http://vault.invalid", Path: "secret/data/search", Field: "token", TokenFile: file})
		s.http = &http.Client{Transport: h}
		began := time.Now()
		var calls sync.WaitGroup
		for range 50 {
			calls.Go(func() {
				if text, err := s.get(t.Context(), false); err == nil || text != "" {
					t.Errorf("%q, %v", text, err)
				}
			})
		}
		synctest.Wait()
		canceled, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.get(canceled, false); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("a call that ends earlier: %v after %v", err, time.Since(began))
		}
		calls.Wait()
		if waited := time.Since(began); waited != vaultTime || h.requests.Load() != 1 {
			t.Errorf("they waited %v for %d requests", waited, h.requests.Load())
		}
	})
}

func TestACanceledCallDoesNotFailOthersThatWaitForVault(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, "hvs.canary\n")
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{}
		s := newVaultSecret(&config.Vault{Address: "http://vault.invalid", Path: "secret/data/search", Field: "token", TokenFile: file})
		s.http = &http.Client{Transport: h}
		first, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		calls.Go(func() { _, _ = s.get(first, false) })
		synctest.Wait()
		calls.Go(func() { _, _ = s.get(t.Context(), false) })
		synctest.Wait()
		cancel()
		synctest.Wait()
		if n := h.requests.Load(); n != 2 {
			t.Errorf("%d requests, want one for each of them", n)
		}
		calls.Wait()
	})
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
