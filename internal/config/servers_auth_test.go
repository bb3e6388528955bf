package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func authEntry(t *testing.T, rest string) (*Auth, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"secret": "canary\n", "empty": "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "servers.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers": {"s": {`+rest+`}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	servers, err := LoadServers(file, []string{"TOKEN=canary"})
	if err != nil {
		return nil, err
	}
	if text := fmt.Sprintf("%v %+v %#v", servers.Entries[0], servers.Entries[0].Auth, servers.Entries[0].Auth); strings.Contains(text, "canary") {
		t.Errorf("a secret is printed: %s", text)
	}
	a := servers.Entries[0].Auth
	if a != nil {
		a.Value.File, a.ClientSecret.File = strings.TrimPrefix(a.Value.File, dir), strings.TrimPrefix(a.ClientSecret.File, dir)
		a.PrivateKeyFile = strings.TrimPrefix(a.PrivateKeyFile, dir)
	}
	return a, nil
}

func TestAnAuthBlockIsRead(t *testing.T) {
	const url = `"url": "https://mcp.example/mcp", `
	service := Auth{
		Mode: AuthService, Header: "Authorization", Issuer: "https://login.example", ClientID: "c", ClientSecret: Secret{Text: "canary"}, Resource: "https://mcp.example/mcp",
	}
	with := func(change func(a *Auth)) *Auth {
		a := service
		change(&a)
		return &a
	}
	for rest, want := range map[string]*Auth{
		url + `"auth": {"mode": "static", "value": "${TOKEN}"}`:                                                                                                                            {Mode: AuthStatic, Header: "Authorization", Scheme: "Bearer", Value: Secret{Text: "canary"}},
		url + `"auth": {"mode": "static", "header": "x-api-key", "value_file": "secret"}`:                                                                                                  {Mode: AuthStatic, Header: "X-Api-Key", Value: Secret{File: "/secret"}},
		url + `"auth": {"mode": "static", "scheme": "", "value_file": "secret"}`:                                                                                                           {Mode: AuthStatic, Header: "Authorization", Value: Secret{File: "/secret"}},
		url + `"auth": {"mode": "oauth_service", "issuer": "https://login.example", "client_id": "c", "client_secret": "${TOKEN}"}`:                                                        &service,
		url + `"auth": {"mode": "oauth_service", "issuer": "https://login.example", "client_id": "c", "client_secret": "${TOKEN}", "resource": "", "audience": "a", "scopes": ["x", "y"]}`: with(func(a *Auth) { a.Resource, a.Audience, a.Scopes = "", "a", []string{"x", "y"} }),
		url + `"auth": {"mode": "oauth_service", "token_url": "http://127.0.0.1:9/t", "client_id": "c", "private_key_file": "secret", "key_id": "k", "algorithm": "ES256"}`: with(func(a *Auth) {
			a.Issuer, a.TokenURL, a.ClientSecret, a.PrivateKeyFile, a.KeyID, a.Algorithm = "", "http://127.0.0.1:9/t", Secret{}, "/secret", "k", "ES256"
		}),
		`"url": "http://mesh.internal/mcp", "auth": {"mode": "static", "value": "${TOKEN}", "allow_http": true}`:                      {Mode: AuthStatic, Header: "Authorization", Scheme: "Bearer", Value: Secret{Text: "canary"}},
		`"url": "http://localhost:3000/mcp", "auth": {"mode": "static", "value": "${TOKEN}"}`:                                         {Mode: AuthStatic, Header: "Authorization", Scheme: "Bearer", Value: Secret{Text: "canary"}},
		`"openapi": "https://api.example/o.json", "base_url": "https://api.example", "auth": {"mode": "static", "value": "${TOKEN}"}`: {Mode: AuthStatic, Header: "Authorization", Scheme: "Bearer", Value: Secret{Text: "canary"}},
		url + `"auth": {"bearer": "${TOKEN}"}`: nil,
	} {
		got, err := authEntry(t, rest)
		if err != nil {
			t.Errorf("%s: %v", rest, err)
			continue
		}
		if diff := cmp.Diff((*plainAuth)(want), (*plainAuth)(got), cmp.Comparer(func(a, b Secret) bool { return a == b })); diff != "" {
			t.Errorf("%s: %s", rest, diff)
		}
	}
}

func TestVaultSecretLocationIsRead(t *testing.T) {
	a, err := authEntry(t, `"url": "https://mcp.example/mcp", "auth": {"mode": "static", "value_vault": {"address": "https://v.example", "path": "secret/data/x", "field": "f", "token_file": "secret"}}`)
	if err != nil || a.Value.Vault == nil {
		t.Fatal(err)
	}
	if v := *a.Value.Vault; v.Address != "https://v.example" || v.Path != "secret/data/x" || v.Field != "f" || filepath.Base(v.TokenFile) != "secret" {
		t.Errorf("read as %+v", v)
	}
	a, err = authEntry(t, `"url": "https://mcp.example/mcp", "auth": {"mode": "static", "value_vault": {"address": "https://v.example", "path": "p", "field": "f", "kubernetes_role": "callyard"}}`)
	if err != nil || a.Value.Vault.KubernetesRole != "callyard" {
		t.Errorf("with a role: %v", err)
	}
	a, err = authEntry(t, `"url": "https://mcp.example/mcp", "auth": {"mode": "static", "value_vault": {"address": "https://v.example", "path": "p", "field": "f", "role_id": "r", "secret_id_file": "secret"}}`)
	if err != nil || a.Value.Vault.RoleID != "r" || filepath.Base(a.Value.Vault.SecretIDFile) != "secret" {
		t.Errorf("with an AppRole: %v", err)
	}
	t.Setenv("TEST_SECRET_ID", "canary")
	a, err = authEntry(t, `"url": "https://mcp.example/mcp", "auth": {"mode": "static", "value_vault": {"address": "https://v.example", "path": "p", "field": "f", "role_id": "r", "secret_id_env": "TEST_SECRET_ID"}}`)
	if err != nil || a.Value.Vault.SecretIDEnv != "TEST_SECRET_ID" {
		t.Errorf("with an AppRole: %v", err)
	}
}

// plainAuth is an Auth that shows what it holds.
type plainAuth Auth

func TestAuthBlockFaultsSuggestTheFix(t *testing.T) {
	const url, service = `"url": "https://mcp.example/mcp", `, `"mode": "oauth_service", "issuer": "https://login.example", "client_id": "c", "client_secret": "canary"`
	for rest, want := range map[string]string{
		url + `"auth": {"value": "canary"}`:                                                                                                                                                "auth.mode: is missing; write \"static\"",
		url + `"auth": {"mode": "magic"}`:                                                                                                                                                  "\"magic\" is not a known mode",
		url + `"auth": {"mode": "static"}`:                                                                                                                                                 "auth.value: is missing",
		url + `"auth": {"mode": "static", "value": "canary", "value_file": "secret"}`:                                                                                                      "value is set too",
		url + `"auth": {"mode": "static", "value": "canary", "value_vault": {"address": "https://v.example"}}`:                                                                             "keep one of them",
		url + `"auth": {"mode": "static", "value_vault": {"address": "http://v.example", "path": "p", "field": "f"}}`:                                                                      "must be the https address",
		url + `"auth": {"mode": "static", "value_vault": {"address": "https://v.example", "path": "a/../b", "field": "f"}}`:                                                                "is not a path",
		url + `"auth": {"mode": "static", "value_vault": {"address": "https://v.example", "path": "p", "field": "f"}}`:                                                                     "name a file with a token",
		url + `"auth": {"mode": "static", "value_vault": {"address": "https://v.example", "token_file": "secret"}}`:                                                                        "auth.value_vault.field: ",
		url + `"auth": {"mode": "static", "value_vault": {"address": "https://v.example", "path": "p", "field": "f", "secret_id_file": "secret"}}`:                                         "auth.value_vault.role_id: is missing",
		url + `"auth": {"mode": "static", "value_vault": {"address": "https://v.example", "path": "p", "field": "f", "role_id": "r"}}`:                                                     "name a file with the secret id",
		url + `"auth": {"mode": "static", "value_vault": {"address": "https://v.example", "path": "p", "field": "f", "role_id": "r", "secret_id_file": "secret", "secret_id_env": "X"}}`:   "and not both",
		url + `"auth": {"mode": "static", "value_vault": {"address": "https://v.example", "path": "p", "field": "f", "role_id": "r", "secret_id_env": "TEST_NOT_SET"}}`:                    "TEST_NOT_SET is not set",
		url + `"auth": {"mode": "static", "value_vault": {"address": "https://v.example", "path": "p", "field": "f", "role_id": "r", "secret_id_file": "secret", "token_file": "secret"}}`: "keep one way to sign in",
		url + `"auth": {"mode": "static", "value_vault": {"address": "https://v.example", "path": "p", "field": "f", "role_id": "r", "secret_id": "canary"}}`:                              "secret_id",
		url + `"auth": {"mode": "static", "value_file": "none"}`:                                                                                                                           "auth.value_file: ",
		url + `"auth": {"mode": "static", "value_file": "empty"}`:                                                                                                                          "the file is empty",
		url + `"auth": {"mode": "static", "value": "can\nary"}`:                                                                                                                            "line break",
		url + `"auth": {"mode": "static", "value": "canary", "bearer": "canary"}`:                                                                                                          "auth.bearer: mode is set too",
		url + `"auth": {"mode": "static", "value": "canary", "issuer": "https://x"}`:                                                                                                       "auth.issuer: has no effect with the mode \"static\"",
		url + `"auth": {"mode": "static", "value": "canary", "header": "Mcp-Session-Id"}`:                                                                                                  "belongs to the protocol",
		url + `"auth": {"mode": "static", "value": "canary", "header": "a b"}`:                                                                                                             "not a valid name of a header",
		url + `"auth": {"mode": "static", "value": "canary", "scheme": "a b"}`:                                                                                                             "must be one word",
		url + `"auth": {"mode": "static", "value": "canary"}, "headers": {"authorization": "canary"}`:                                                                                      "\"Authorization\" is set by auth too",
		url + `"auth": {"mode": "static", "value": "canary"}, "bearerTokenEnv": "TOKEN"`:                                                                                                   "auth has a credential too",
		url + `"auth": {` + service + `, "value": "canary"}`:                                                                                                                               "auth.value: has no effect",
		url + `"auth": {` + service + `, "private_key_file": "secret"}`:                                                                                                                    "the client has a secret too",
		url + `"auth": {` + service + `, "key_id": "k"}`:                                                                                                                                   "has no effect without \"private_key_file\"",
		url + `"auth": {` + service + `, "scopes": ["a b"]}`:                                                                                                                               "entry 1 is not a scope",
		url + `"auth": {` + service + `, "client_auth": "private_key_jwt"}`:                                                                                                                "not a known method",
		url + `"auth": {"mode": "oauth_service", "client_id": "c", "client_secret": "canary"}`:                                                                                             "auth.issuer: is missing",
		url + `"auth": {"mode": "oauth_service", "issuer": "http://login.example", "client_id": "c", "client_secret": "canary"}`:                                                           "must be an https address",
		url + `"auth": {"mode": "oauth_service", "issuer": "https://login.example", "client_secret": "canary"}`:                                                                            "auth.client_id: is missing",
		url + `"auth": {"mode": "oauth_service", "issuer": "https://login.example", "client_id": "c"}`:                                                                                     "auth.client_secret: is missing",
		`"url": "http://mcp.example/mcp", "auth": {"mode": "static", "value": "canary"}`:                                                                                                   "unencrypted",
		`"url": "ws://mcp.example/mcp", "auth": {"mode": "static", "value": "canary"}`:                                                                                                     "unencrypted",
		`"command": "x", "auth": {"mode": "static", "value": "canary"}`:                                                                                                                    "gets no bearer token",
		`"openapi": "https://api.example/o.json", "auth": {"mode": "static", "value": "canary"}`:                                                                                           "requires \"base_url\"",
	} {
		_, err := authEntry(t, rest)
		var faults *Faults
		switch {
		case !errors.As(err, &faults) || !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v, want %s", rest, err, want)
		case strings.Contains(strings.ReplaceAll(err.Error(), "can\\nary", "canary"), "canary"):
			t.Errorf("%s: a secret is repeated: %v", rest, err)
		}
	}
	if _, err := ParseServer("s", json.RawMessage(`{"url": "https://mcp.example/mcp", "auth": {"mode": "static", "value_file": "/etc/passwd"}}`)); err == nil || !strings.Contains(err.Error(), "cannot read files here") {
		t.Errorf("over the API: %v", err)
	}
}
