package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/upstream/oauth"
)

// Secrets of HashiCorp Vault and OpenBao are read over their HTTP API. Two requests are
// needed, so that the official client, with its dozens of modules, would be more to keep up
// to date than this file.

const (
	// vaultRecheck is how old a secret may be that was read from Vault. The secrets engine KV
	// tells nobody of a new version.
	vaultRecheck = 30 * time.Second
	vaultTime    = 5 * time.Second // for one read, with the login
	mostVault    = 1 << 20         // of an answer
	// serviceAccount is where Kubernetes puts the token of a pod.
	serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/token"
)

// errGone means that Vault has the secret no more: that is not a fault of Vault, and what was
// read before is not used any longer.
var errGone = errors.New("Vault does not have it")

// vaultSecret is a secret in Vault. It is safe for concurrent use.
type vaultSecret struct {
	c     *config.Vault
	http  *http.Client
	fetch sync.Mutex // held during a read

	mu      sync.Mutex
	text    string
	checked time.Time

	login vaultLogin // guarded by fetch
}

func newVaultSecret(c *config.Vault) *vaultSecret {
	return &vaultSecret{c: c, http: oauth.NewHTTPClient(c.Address)}
}

func (v *vaultSecret) last() (string, time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.text, v.checked
}

// get returns the secret, read again where it is old, or always with now. While one caller
// reads it again the others use the last one; so they do while Vault is away.
func (v *vaultSecret) get(ctx context.Context, now bool) (string, error) {
	began := time.Now()
	text, checked := v.last()
	if text != "" && !now {
		if began.Sub(checked) < vaultRecheck || !v.fetch.TryLock() {
			return text, nil
		}
	} else {
		v.fetch.Lock()
	}
	defer v.fetch.Unlock()
	if text, checked = v.last(); text != "" && checked.After(began) {
		return text, nil // somebody was faster
	}
	ctx, cancel := context.WithTimeout(ctx, vaultTime)
	defer cancel()
	fresh, err := v.read(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.checked = time.Now()
	switch {
	case err == nil:
		v.text = fresh
	case errors.Is(err, errGone):
		v.text = ""
	}
	if v.text == "" {
		return "", fmt.Errorf("its secret cannot be read from Vault: %w", err)
	}
	return v.text, nil
}

func (*vaultSecret) changes() bool { return true }

// read reads the secret, after another login where the first token is not taken any more.
func (v *vaultSecret) read(ctx context.Context) (string, error) {
	for again := range 2 {
		token, err := v.signIn(ctx, again > 0)
		if err != nil {
			return "", err
		}
		status, body, err := v.send(ctx, http.MethodGet, v.c.Path, token, nil)
		switch {
		case err != nil:
			return "", err
		case status == http.StatusForbidden && again == 0:
			continue
		case status == http.StatusNotFound:
			return "", errGone
		case status != http.StatusOK:
			return "", fmt.Errorf("Vault answers with HTTP status %d", status)
		}
		return readVault(body, v.c.Field)
	}
	return "", errors.New("Vault refuses the token with HTTP status 403")
}

// readVault takes a field out of an answer of the secrets engine KV, version 2 or 1.
func readVault(body []byte, field string) (string, error) {
	var a struct {
		Data map[string]json.RawMessage `json:"data"`
	}
	if json.Unmarshal(body, &a) != nil || a.Data == nil {
		return "", errors.New("the answer of Vault is not that of the secrets engine KV")
	}
	fields := a.Data
	if _, versioned := a.Data["metadata"]; versioned {
		inner, ok := a.Data["data"]
		if fields = nil; !ok || json.Unmarshal(inner, &fields) != nil || fields == nil {
			return "", errGone // this version is deleted
		}
	}
	var text string
	if raw, ok := fields[field]; !ok || json.Unmarshal(raw, &text) != nil || text == "" || len(text) > maxSecret {
		return "", fmt.Errorf("it has no field %q with a text", field)
	}
	return text, nil
}

// send makes one request. Its errors hold nothing that Vault wrote.
func (v *vaultSecret) send(ctx context.Context, method, path, token string, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(v.c.Address, "/")+"/v1/"+strings.TrimLeft(path, "/"), bytes.NewReader(body))
	if err != nil {
		return 0, nil, errors.New("its address is not valid")
	}
	req.Header.Set("X-Vault-Request", "true")
	for name, value := range map[string]string{"X-Vault-Token": token, "X-Vault-Namespace": v.c.Namespace} {
		if value, err = header(value); err != nil {
			return 0, nil, err
		}
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := v.http.Do(req)
	if err != nil {
		return 0, nil, errors.New("Vault cannot be reached")
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, mostVault+1))
	if err != nil || len(text) > mostVault {
		return 0, nil, errors.New("the answer of Vault cannot be read")
	}
	return resp.StatusCode, text, nil
}
