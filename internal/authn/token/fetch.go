package token

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/callyard/callyard/internal/kit/urls"
	"github.com/callyard/callyard/internal/settings"
)

// maxAnswer limits the size of an issuer's response, in bytes.
const maxAnswer = 1 << 20

// newClient returns a client that follows no redirect, because another address is not the
// configured issuer.
func newClient() *http.Client {
	return &http.Client{
		Transport: http.DefaultTransport.(*http.Transport).Clone(), Timeout: fetchWithin,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("the issuer redirects requests for its keys")
		},
	}
}

// source returns the function that fetches the keys of an issuer.
func source(c *settings.Issuer, client *http.Client) func(context.Context) ([]byte, error) {
	switch {
	case c.JWKSFile != "":
		return func(context.Context) ([]byte, error) { return os.ReadFile(c.JWKSFile) }
	case c.JWKSURL != "":
		return func(ctx context.Context) ([]byte, error) { return get(ctx, client, c.JWKSURL) }
	}
	return func(ctx context.Context) ([]byte, error) {
		address, err := discover(ctx, client, c.Issuer)
		if err != nil {
			return nil, err
		}
		return get(ctx, client, address)
	}
}

// errAbsent means that an issuer does not have the document.
var errAbsent = errors.New("there is no such document")

// discover reads the address of the keys from the discovery document (OpenID Connect Discovery 1.0,
// section 4), or from the metadata of an authorization server without sign-in (RFC 8414, section
// 3).
func discover(ctx context.Context, client *http.Client, issuer string) (string, error) {
	raw, err := get(ctx, client, strings.TrimRight(issuer, "/")+"/.well-known/openid-configuration")
	if u, fault := url.Parse(issuer); errors.Is(err, errAbsent) && fault == nil {
		u.Path = "/.well-known/oauth-authorization-server" + strings.TrimRight(u.Path, "/")
		raw, err = get(ctx, client, u.String())
	}
	if err != nil {
		return "", err
	}
	var doc struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return "", fmt.Errorf("reading the discovery document of %s: %w", issuer, err)
	}
	if doc.Issuer != issuer {
		return "", fmt.Errorf("the discovery document of %s is that of another issuer", issuer)
	}
	if _, ok := urls.Secure(doc.Keys); !ok {
		return "", fmt.Errorf("the discovery document of %s names no https URL of its keys", issuer)
	}
	return doc.Keys, nil
}

func get(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("asking an issuer: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking an issuer: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("%s answers %s: %w", address, resp.Status, errAbsent)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", address, resp.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the answer of %s: %w", address, err)
	case len(raw) > maxAnswer:
		return nil, fmt.Errorf("the answer of %s is longer than %d bytes", address, maxAnswer)
	}
	return raw, nil
}
