package token_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/authn/token"
	"github.com/callyard/callyard/internal/authn/token/tokentest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

func open(t testing.TB, issuers ...settings.Issuer) *token.Verifier {
	t.Helper()
	v, err := token.New(issuers, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

func TestClaimsBecomeAPrincipal(t *testing.T) {
	is := tokentest.Start(t)
	plain := is.Entry("idp")
	mapped := is.Entry("corp")
	mapped.Claims = settings.ClaimNames{Name: "preferred_username", Owner: "email", Groups: "realm.roles", Tenant: "tid", Scopes: "scp"}
	mapped.GroupMap = map[string][]string{"engineers": {"dev", "ops"}}
	ci := is.Entry("ci")
	ci.Types, ci.Audiences, ci.Scopes = []string{"JWT"}, []string{"callyard"}, []string{"tools:call:files"}
	ci.RequireClaims = map[string][]string{"kubernetes.io.namespace": {"build", "release"}}
	claims := tokentest.Claims{
		"groups": []string{"b", "a", "b"}, "preferred_username": "Ann", "email": "ann@example.com", "realm": map[string]any{"roles": []string{"engineers", "others"}}, "tid": "red", "scope": "openid tools:read", "scp": []string{"tools:call", "offline_access"},
		"kubernetes.io": map[string]any{"namespace": "build"},
	}
	for _, c := range []struct {
		entry  settings.Issuer
		header tokentest.Header
		claims tokentest.Claims
		want   schema.Principal
		tenant string
		has    string
	}{
		{plain, nil, nil, schema.Principal{Name: "idp:ann", Groups: []string{"a", "b"}}, "", "tools:read"},
		{mapped, nil, nil, schema.Principal{Name: "corp:red/Ann", Owner: "ann@example.com", Groups: []string{"dev", "ops"}, Tenant: "red"}, "red", "tools:call:any"},
		{ci, tokentest.Header{"typ": nil}, tokentest.Claims{"scope": nil, "aud": "callyard"}, schema.Principal{Name: "ci:ann", Groups: []string{"a", "b"}}, "", "tools:call:files"},
	} {
		all := is.Claims("ann", resource, claims)
		for name, value := range c.claims {
			if all[name] = value; value == nil {
				delete(all, name)
			}
		}
		got, err := open(t, c.entry).Verify(context.Background(), is.Key().Sign(t, all, c.header), resource)
		if err != nil {
			t.Errorf("%s: %v", c.entry.Name, err)
			continue
		}
		if diff := cmp.Diff(c.want, got.Principal); diff != "" || got.Tenant != schema.TenantID(c.tenant) || got.Subject != "ann" || got.Client != "app" || !got.Scopes.Has(c.has) || got.Scopes.Has("admin") {
			t.Errorf("%s: %+v (-want +got)\n%s", c.entry.Name, got, diff)
		}
	}
	for name, change := range map[string]tokentest.Claims{
		"another namespace": {"kubernetes.io": map[string]any{"namespace": "evil"}}, "no namespace": {"kubernetes.io": nil}, "a flat text": {"kubernetes.io": "build"},
	} {
		change["aud"] = "callyard"
		if got, err := open(t, ci).Verify(context.Background(), is.Key().Sign(t, is.Claims("ann", "", change), tokentest.Header{"typ": nil}), resource); err == nil {
			t.Errorf("%s: accepted as %s", name, got.Principal.Name)
		}
	}
}

func TestTokenOfOneMountIsRefusedAtAnother(t *testing.T) {
	is := tokentest.Start(t)
	v := open(t, is.Entry("idp"))
	for _, c := range []struct {
		aud, at string
		ok      bool
	}{
		{door + "/mcp/demo", door + "/mcp/demo", true}, {door + "/mcp/demo", door + "/mcp/files", false}, {door + "/mcp/demo", door + "/mcp", false}, {door + "/mcp/demo", door, false},
		{door + "/mcp", door + "/mcp/files", true}, {door + "/mcp", door, false}, {door, door + "/mcp/files", true}, {door, door, true}, {door, "https://door.example.evil", false},
	} {
		raw := is.Token(t, "ann", c.aud, "")
		for range 2 { // the second time it is remembered
			if _, err := v.Verify(context.Background(), raw, c.at); (err == nil) != c.ok {
				t.Errorf("for %s at %s: %v", c.aud, c.at, err)
			}
		}
	}
}

func TestKeysAreReadFromAFile(t *testing.T) {
	key := tokentest.NewKey(t, "key", jose.RS256)
	file := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(file, tokentest.KeySet(key), 0o600); err != nil {
		t.Fatal(err)
	}
	is := tokentest.Start(t)
	entry := is.Entry("idp")
	entry.JWKSFile = file
	if _, err := open(t, entry).Verify(context.Background(), key.Sign(t, is.Claims("ann", resource, nil), nil), resource); err != nil {
		t.Error(err)
	}
	if _, err := open(t, entry).Verify(context.Background(), is.Token(t, "ann", resource, ""), resource); err == nil || is.Fetches.Load() != 0 {
		t.Errorf("a key that is not in the file: %v, %d fetches", err, is.Fetches.Load())
	}
}

func FuzzVerify(f *testing.F) {
	is := tokentest.Start(f)
	v, err := token.New([]settings.Issuer{is.Entry("idp")}, slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	defer v.Close()
	good := is.Token(f, "ann", resource, "tools:read")
	f.Add(good)
	f.Add("..")
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := v.Verify(context.Background(), raw, resource)
		if err == nil && (raw[:len(raw)-86] != good[:len(good)-86] || got.Principal.Name != "idp:ann") { // of an ECDSA signature there are two forms
			t.Errorf("accepted as %s", got.Principal.Name)
		}
		if err != nil && schema.KindOf(err) == schema.KindInternal {
			t.Error(err)
		}
	})
}
