package frontdoor_test

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/callyard/callyard/internal/authn/token/tokentest"
)

// reply is an answer of the front door.
type reply struct {
	status int
	header http.Header
	body   string
}

// challenge returns a parameter of the WWW-Authenticate header of the answer.
func (r reply) challenge(parameter string) string {
	found := regexp.MustCompile(`[ ,]` + parameter + `="([^"]*)"`).FindStringSubmatch(r.header.Get("Www-Authenticate"))
	if found == nil {
		return ""
	}
	return found[1]
}

// send sends a request with exactly these headers, without adding a credential.
func (d *door) send(t *testing.T, method, path, body string, header http.Header) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, d.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	answer, err := d.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{answer.StatusCode, answer.Header, string(text)}
}

// TestOAuthResourceServerRequirements tests the duties of a resource server in the MCP specification
// ("Authorization", 2025-11-25 and 2026-07-28), RFC 6750 and RFC 9728. The conformance suite has no
// scenarios for them.
func TestOAuthResourceServerRequirements(t *testing.T) {
	d, is := openWithIssuer(t)
	const mount, wellKnown = "/mcp/s", "/.well-known/oauth-protected-resource"
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	post := func(body string, authorization ...string) reply {
		h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if len(authorization) > 0 {
			h["Authorization"] = authorization
		}
		return d.send(t, "POST", mount, body, h)
	}
	with := func(change tokentest.Claims) string {
		return "Bearer " + is.Key().Sign(t, is.Claims("ann", publicURL+mount, change), nil)
	}
	good := "Bearer " + is.Token(t, "ann", publicURL+mount, "tools:read tools:call")
	metadata := d.send(t, "GET", wellKnown+"/yard"+mount, "", nil)
	var said struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Methods  []string `json:"bearer_methods_supported"`
		Scopes   []string `json:"scopes_supported"`
	}
	if err := json.Unmarshal([]byte(metadata.body), &said); err != nil {
		t.Fatal(metadata.status, metadata.body, err)
	}
	none, scope := post(list), post(callRead, with(tokentest.Claims{"scope": "tools:read"}))
	session := post(initialize, good).header.Get("Mcp-Session-Id")
	in := func(id string, authorization ...string) reply {
		return d.send(t, "POST", mount, list, http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Session-Id": {id}, "Authorization": authorization})
	}
	refused := func(authorization ...string) bool {
		r := post(list, authorization...)
		return r.status == http.StatusUnauthorized && r.challenge("error") == "invalid_token" && r.challenge("resource_metadata") != ""
	}
	changed := strings.TrimPrefix(good, "Bearer ")
	changed = changed[:strings.LastIndexByte(changed, '.')+1] + "AAAA" + changed[strings.LastIndexByte(changed, '.')+5:]
	raw := func(header string) string {
		claims, err := json.Marshal(is.Claims("ann", publicURL+mount, nil))
		if err != nil {
			t.Fatal(err)
		}
		return "Bearer " + is.Key().SignRaw(t, []byte(header), claims)
	}
	for _, c := range []struct {
		what string
		ok   bool
	}{
		// RFC 9728, section 3: the URL and the content of the metadata.
		{"the metadata is at the address with the path in it", metadata.status == 200},
		{"the metadata is JSON", strings.HasPrefix(metadata.header.Get("Content-Type"), "application/json")},
		{"programs in browsers may read it", d.send(t, "GET", wellKnown+"/yard"+mount, "", http.Header{"Origin": {"https://inspector.example"}}).header.Get("Access-Control-Allow-Origin") == "*"},
		{"the metadata is also at the root", d.send(t, "GET", wellKnown, "", nil).status == 200},
		{"the resource is the address of the mount, byte for byte", said.Resource == publicURL+mount},
		{"an authorization server is named", len(said.Servers) == 1 && said.Servers[0] == is.URL},
		{"tokens are accepted only in the header", slices.Equal(said.Methods, []string{"header"})},
		{"offline_access is not a scope of the resource", len(said.Scopes) > 0 && !slices.Contains(said.Scopes, "offline_access")},
		{"a mount of a set has metadata of its own", strings.Contains(d.send(t, "GET", wellKnown+"/yard/mcp/@reads", "", nil).body, publicURL+"/mcp/@reads")},
		// RFC 6750, section 3, and the challenge of RFC 9728, section 5.1.
		{"a request without a token is answered 401", none.status == 401},
		{"there is one challenge", len(none.header.Values("Www-Authenticate")) == 1 && strings.HasPrefix(none.header.Get("Www-Authenticate"), "Bearer ")},
		{"the challenge leads to the metadata", none.challenge("resource_metadata") == "https://door.example"+wellKnown+"/yard"+mount},
		{"the challenge names the scopes", none.challenge("scope") == "tools:read tools:call"},
		{"without a token there is no error in the challenge", none.challenge("error") == ""},
		{"GET is challenged", d.send(t, "GET", mount, "", http.Header{"Accept": {"text/event-stream"}}).status == 401},
		{"DELETE is challenged", d.send(t, "DELETE", mount, "", http.Header{"Mcp-Session-Id": {session}}).status == 401},
		// Invalid tokens.
		{"a malformed token", refused("Bearer x")},
		{"a token that has expired", refused(with(tokentest.Claims{"exp": time.Now().Add(-2 * time.Minute).Unix()}))},
		{"a token that is not valid yet", refused(with(tokentest.Claims{"nbf": time.Now().Add(2 * time.Minute).Unix()}))},
		{"a token for another resource", refused(with(tokentest.Claims{"aud": "https://other.example/mcp"}))},
		{"a token without an audience", refused(with(tokentest.Claims{"aud": nil}))},
		{"a token of an unknown issuer", refused(with(tokentest.Claims{"iss": "https://evil.example"}))},
		{"a token with a changed signature", refused("Bearer " + changed)},
		{"a token without a signature", refused(raw(`{"alg":"none","typ":"at+jwt"}`))},
		{"a token with a shared secret", refused(raw(`{"alg":"HS256","typ":"at+jwt"}`))},
		{"a token signed with a key that the issuer does not publish", refused("Bearer " + tokentest.NewKey(t, "other", jose.ES256).Sign(t, is.Claims("ann", publicURL+mount, nil), nil))},
		{"a token in the query", d.send(t, "POST", mount+"?access_token="+strings.TrimPrefix(good, "Bearer "), list, http.Header{"Content-Type": {"application/json"}}).status == 401},
		{"a token in a form", d.send(t, "POST", mount, "access_token="+strings.TrimPrefix(good, "Bearer "), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}).status == 401},
		{"two credentials", post(list, good, "Bearer x").status == 400 || post(list, good, "Bearer x").status == 401},
		{"another scheme", post(list, "Basic "+strings.TrimPrefix(good, "Bearer ")).status == 401},
		// Scopes (MCP, "Scope Challenge Handling").
		{"a scope that is missing is answered 403", scope.status == 403 && scope.challenge("error") == "insufficient_scope"},
		{"the challenge names the scope that is missing", scope.challenge("scope") == "tools:call"},
		{"the challenge for a scope leads to the metadata", scope.challenge("resource_metadata") == none.challenge("resource_metadata")},
		// Valid tokens.
		{"a valid token is accepted", in(session, good).status == 200},
		{"the scheme is case-insensitive", in(session, "bearer "+strings.TrimPrefix(good, "Bearer ")).status == 200},
		// Sessions are not credentials (MCP, "Session Hijacking").
		{"a session without a token is answered 401", in(session).status == 401},
		{"a session of another principal is not found", in(session, "Bearer "+is.Token(t, "bob", publicURL+mount, "tools:read")).status == 404},
		{"an unknown session is not found", in("mcps_unknown", good).status == 404},
	} {
		t.Run(strings.ReplaceAll(c.what, " ", "-"), func(t *testing.T) {
			if !c.ok {
				t.Errorf("%s: it is not so", c.what)
			}
		})
	}
}
