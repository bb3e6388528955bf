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

// This file uses the HTTP API of HashiCorp Vault and OpenBao. Only two requests are needed, so the
// official client with its dozens of modules would cost more maintenance than this file.

const (
	// vaultRecheck is the age after which a secret is read again. The KV secrets engine does not
	// announce new versions.
	vaultRecheck = 30 * time.Second
	vaultTime    = 5 * time.Second // limit for one read including the login
	mostVault    = 1 << 20         // maximum response, in bytes
	// serviceAccount is the path at which Kubernetes mounts the token of a pod.
	serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/token"
)

// errGone means that Vault no longer has the secret. Unlike a failure of Vault, it ends the use of
// the last secret.
var errGone = errors.New("Vault does not have it")

// vaultSecret is a secret in Vault. It is safe for concurrent use.
type vaultSecret struct {
	c     *config.Vault
	http  *http.Client
	fetch chan struct{} // holds one value during a read

	mu      sync.Mutex
	text    string
	fault   error // of the last read, if there is no text
	checked time.Time

	login vaultLogin // guarded by fetch
}

func newVaultSecret(c *config.Vault) *vaultSecret {
	return &vaultSecret{c: c, http: oauth.NewHTTPClient(c.Address), fetch: make(chan struct{}, 1)}
}

// last returns the result of the last read.
func (v *vaultSecret) last() (text string, checked time.Time, fault error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.text, v.checked, v.fault
}

// get returns the secret. It reads it again if it is old, or always if now is set. During the read,
// and while Vault is unavailable, other callers use the last secret. Without one, they get the
// result of the read that they waited for.
func (v *vaultSecret) get(ctx context.Context, now bool) (string, error) {
	began := time.Now()
	text, checked, _ := v.last()
	isUsable := text != "" && !now
	if isUsable && began.Sub(checked) < vaultRecheck {
		return text, nil
	}
	select {
	case v.fetch <- struct{}{}:
	default:
		if isUsable {
			return text, nil
		}
		select {
		case v.fetch <- struct{}{}:
		case <-ctx.Done():
			return "", fmt.Errorf("its secret cannot be read from Vault: %w", ctx.Err())
		}
	}
	defer func() { <-v.fetch }()
	if text, checked, fault := v.last(); checked.After(began) && (text != "" || fault != nil) {
		return text, fault // another caller read it already
	}
	reading, cancel := context.WithTimeout(ctx, vaultTime)
	defer cancel()
	fresh, err := v.read(reading)
	if err != nil && ctx.Err() != nil {
		return "", fmt.Errorf("its secret cannot be read from Vault: %w", ctx.Err()) // says nothing about Vault
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.checked, v.fault = time.Now(), nil
	switch {
	case err == nil:
		v.text = fresh
	case errors.Is(err, errGone):
		v.text = ""
	}
	if v.text == "" {
		v.fault = fmt.Errorf("its secret cannot be read from Vault: %w", err)
	}
	return v.text, v.fault
}

func (*vaultSecret) changes() bool { return true }

// read reads the secret. If the token is refused, it logs in again.
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

// readVault extracts a field from a response of the KV secrets engine, version 2 or 1.
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
			return "", errGone // this version was deleted
		}
	}
	var text string
	if raw, ok := fields[field]; !ok || json.Unmarshal(raw, &text) != nil || text == "" || len(text) > maxSecret {
		return "", fmt.Errorf("it has no field %q with a text", field)
	}
	return text, nil
}

// send makes one request. Its errors contain no text of Vault.
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
