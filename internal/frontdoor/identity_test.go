package frontdoor_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn/token/tokentest"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/toolset"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

const publicURL = "https://door.example/yard"

// openWithIssuer opens a front door with one issuer, "idp".
func openWithIssuer(t *testing.T) (*door, *tokentest.Issuer) {
	t.Helper()
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	is := tokentest.Start(t)
	return openDoor(t, srv, frontdoor.Options{Config: settings.FrontDoor{
		PublicURL: publicURL + "/", Issuers: []settings.Issuer{is.Entry("idp")},
		Sets: []toolset.Set{{Name: "reads", Include: []toolset.Selector{{Server: "s", Tool: "read"}}}},
	}}), is
}

const (
	initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`
	callRead   = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{}}}`
	callOther  = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"write","arguments":{}}}`
)

func (d *door) mcp(token, mount, body string, header ...string) (int, http.Header, string) {
	d.t.Helper()
	return d.do("POST", mount, body, append([]string{"Authorization", "Bearer " + token, "Content-Type", "application/json"}, header...)...)
}

func TestTokenAudienceNeverComesFromTheRequest(t *testing.T) {
	d, is := openWithIssuer(t)
	own, other := is.Token(t, "ann", publicURL+"/mcp/s", "tools:read"), is.Token(t, "ann", "https://evil.example/mcp/s", "tools:read")
	var variations [][]string
	for _, host := range []string{"evil.example", "evil.example:443", "door.example", "door.example.evil.example", "127.0.0.1", "localhost:1", "[::1]", "DOOR.EXAMPLE", "x\"y", "evil.example/yard", "a b", "door.example@evil.example", "xn--dor-1na.example"} {
		variations = append(variations, []string{"Host", host}, []string{"X-Forwarded-Host", host}, []string{"Forwarded", "host=" + host + ";proto=https"}, []string{"X-Forwarded-Host", host, "X-Forwarded-Proto", "http", "X-Forwarded-Port", "1", "X-Forwarded-Prefix", "/evil"})
	}
	if len(variations) < 50 {
		t.Fatalf("%d variations", len(variations))
	}
	for _, header := range variations {
		for path, resource := range map[string]string{"/yard/mcp/s": "/mcp/s", "/mcp/s": "/mcp/s", "/mcp": "/mcp", "": "/mcp", "/mcp/@reads": "/mcp/@reads", "/servers/s/mcp": "/servers/s/mcp"} {
			status, _, body := d.do("GET", "/.well-known/oauth-protected-resource"+path, "", header...)
			if status == http.StatusBadRequest && header[0] == "Host" {
				continue // not a host
			}
			var m struct {
				Resource string   `json:"resource"`
				Servers  []string `json:"authorization_servers"`
				Scopes   []string `json:"scopes_supported"`
			}
			if err := json.Unmarshal([]byte(body), &m); err != nil || status != 200 || m.Resource != publicURL+resource || !slices.Equal(m.Servers, []string{is.URL}) || len(m.Scopes) != 8 {
				t.Errorf("%v: %s: %d %s", header, path, status, body)
			}
		}
		status, h, body := d.mcp("", "/mcp/s", initialize, append([]string{"Authorization", ""}, header...)...)
		if want := `resource_metadata="https://door.example/.well-known/oauth-protected-resource/yard/mcp/s"`; status == 401 && !strings.Contains(h.Get("Www-Authenticate"), want) || status != 401 && status != 400 {
			t.Errorf("%v: %d %v %s", header, status, h, body)
		}
		if status, _, body := d.mcp(other, "/mcp/s", initialize, header...); status != 401 && status != 400 {
			t.Errorf("%v: a token for another resource: %d %s", header, status, body)
		}
		if status, _, body := d.mcp(own, "/mcp/s", initialize, header...); status != 200 && status != 400 {
			t.Errorf("%v: our own token: %d %s", header, status, body)
		}
	}
}

// Without API keys in the configuration, any text that was no token counted as the local principal,
// who may do everything.
func TestTextThatIsNoTokenIsRefusedWithoutAPIKeys(t *testing.T) {
	d, is := openWithIssuer(t)
	if err := d.in.ReplaceKeys(nil); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"x", "x.y.z", "sk-1234", "cyk_unknown", strings.Repeat("k", 5000)} {
		for _, header := range [][]string{{"Authorization", "Bearer " + text}, {"X-API-Key", text}} {
			if status, h, body := d.do("GET", "/servers", "", header...); status != 401 || h.Get("Www-Authenticate") == "" {
				t.Errorf("%.40s: %d %s", header, status, body)
			}
			if status, _, body := d.do("POST", "/mcp/s", initialize, append(header, "Content-Type", "application/json")...); status != 401 {
				t.Errorf("MCP, %.40s: %d %s", header, status, body)
			}
		}
	}
	if status, _, body := d.mcp(is.Token(t, "ann", publicURL, "tools:read"), "/mcp/s", initialize); status != 200 {
		t.Errorf("a token: %d %s", status, body)
	}
}

// Tokens of many clients expire at once behind the address of one gateway. A client that is answered 429
// does not fetch a new token.
func TestExpiredTokensAreAlwaysChallenged(t *testing.T) {
	d, is := openWithIssuer(t)
	expired := is.Key().Sign(t, is.Claims("ann", publicURL, tokentest.Claims{"exp": time.Now().Add(-2 * time.Minute).Unix()}), nil)
	for i := range 20 {
		status, h, body := d.mcp(expired, "/mcp/s", initialize)
		if i%2 == 0 {
			status, h, body = d.do("GET", "/servers", "", "Authorization", "Bearer "+expired)
		}
		if status != 401 || !strings.Contains(h.Get("Www-Authenticate"), `error="invalid_token"`) {
			t.Fatalf("request %d: %d %v %s", i, status, h, body)
		}
	}
	if status, _, body := d.do("GET", "/servers", "", "Authorization", "Bearer cyk_unknown"); status != 401 {
		t.Errorf("the first wrong API key of the address: %d %s", status, body)
	}
}

func TestAuthChallengeComesBeforeAnyMessage(t *testing.T) {
	d, is := openWithIssuer(t)
	at := func(scopes string) string { return is.Token(t, "ann", publicURL+"/mcp", scopes) }
	session := func(token string) []string {
		status, h, body := d.mcp(token, "/mcp/s", initialize)
		if status != 200 {
			t.Fatalf("%d %s", status, body)
		}
		return []string{"Mcp-Session-Id", h.Get("Mcp-Session-Id")}
	}
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	const metadata = `resource_metadata="https://door.example/.well-known/oauth-protected-resource/yard/mcp/s"`
	for _, c := range []struct {
		name, token, body string
		status            int
		challenge         []string
	}{
		{"no token", "", list, 401, []string{`scope="tools:read tools:call"`, metadata}},
		{"not a token", "eyJx.eyJx.x", list, 401, []string{`error="invalid_token"`, metadata}},
		{"an unknown key", "cyk_x", list, 401, []string{`error="invalid_token"`, metadata}},
		{"a list without the scope", at("tools:call"), list, 403, []string{`error="insufficient_scope"`, `scope="tools:read"`, metadata}},
		{"a list", at("tools:read"), list, 200, nil},
		{"a call without the scope", at("tools:read calls:read admin approve"), callRead, 403, []string{`error="insufficient_scope"`, `scope="tools:call"`, metadata}},
		{"a call with the scope of another server", at("tools:call:other"), callRead, 403, []string{`error="insufficient_scope"`, `scope="tools:call:s"`}},
		{"a call with a set that has not the tool", at("tools:call:@reads"), callOther, 403, []string{`scope="tools:call:s"`}},
		{"a call with a set that is not there", at("tools:call:@gone"), callRead, 403, []string{`scope="tools:call:s"`}},
		{"a call", at("tools:call"), callRead, 200, nil},
		{"a call with the scope of the server", at("tools:call:s"), callRead, 200, nil},
		{"a call with a set", at("tools:call:@reads"), callRead, 200, nil},
		{"a call with a key", d.key, callRead, 200, nil},
	} {
		var header []string
		if c.token == "" || c.status == 401 {
			header = []string{"Authorization", strings.TrimSpace("Bearer " + c.token)}
			if c.token == "" {
				header[1] = ""
			}
		} else {
			header = session(c.token)
		}
		status, h, body := d.mcp(c.token, "/mcp/s", c.body, header...)
		got := h.Get("Www-Authenticate")
		if status != c.status || (got == "") != (c.challenge == nil) || strings.Count(got, "Bearer") > 1 {
			t.Errorf("%s: %d %q %s", c.name, status, got, body)
		}
		for _, part := range c.challenge {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q has no %s", c.name, got, part)
			}
		}
	}
}

func TestASessionBelongsToItsSubject(t *testing.T) {
	d, is := openWithIssuer(t)
	ann, again, bob := is.Token(t, "ann", publicURL, "tools:read"), is.Key().Sign(t, is.Claims("ann", publicURL, tokentest.Claims{"scope": "tools:read", "jti": "2"}), nil), is.Token(t, "bob", publicURL, "tools:read")
	_, h, _ := d.mcp(ann, "/mcp/s", initialize)
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, c := range []struct {
		token  string
		status int
	}{{ann, 200}, {again, 200}, {bob, 404}, {d.key, 404}} {
		if status, _, body := d.mcp(c.token, "/mcp/s", ping, "Mcp-Session-Id", h.Get("Mcp-Session-Id")); status != c.status {
			t.Errorf("%d, want %d: %s", status, c.status, body)
		}
	}
}

func TestScopesAreEnforcedOverREST(t *testing.T) {
	d, is := openWithIssuer(t)
	as := func(scopes string) []string {
		return []string{"Authorization", "Bearer " + is.Token(t, "ann", publicURL, scopes)}
	}
	for _, c := range []struct {
		scopes, method, path, body string
		status                     int
	}{
		{"tools:read", "GET", "/servers", "", 200}, {"tools:call admin approve calls:read", "GET", "/servers", "", 403}, {"", "GET", "/servers", "", 403}, {"openid profile", "GET", "/tools", "", 403},
		{"", "GET", "/version", "", 200}, {"", "GET", "/livez", "", 200}, {"tools:read", "GET", "/metrics", "", 200}, {"calls:read", "GET", "/metrics", "", 403},
		{"tools:call", "POST", "/servers/s/tools/read", "{}", 200}, {"tools:call:s", "POST", "/servers/s/tools/read", "{}", 200}, {"tools:call:@reads", "POST", "/servers/s/tools/read", "{}", 200},
		{"tools:call:@reads", "POST", "/servers/s/tools/write", "{}", 403}, {"tools:call:other", "POST", "/servers/s/tools/read", "{}", 403}, {"tools:read admin", "POST", "/servers/s/tools/read", "{}", 403},
		{"tools:call:other", "POST", "/calls", `{"server":"s","tool":"read","arguments":{}}`, 403}, {"tools:call:s", "POST", "/calls", `{"server":"s","tool":"read","arguments":{}}`, 200},
		{"calls:read", "GET", "/calls", "", 200}, {"tools:read", "GET", "/calls", "", 403},
		{"tools:read tools:call", "PATCH", "/servers/s/tools/read", `{"enabled":true}`, 403}, {"admin", "PATCH", "/servers/s/tools/read", `{"enabled":true}`, 200}, {"tools:read", "DELETE", "/sets/x", "", 403},
		{"tools:read", "GET", "/servers/s/resources/a%2Fb", "", 403}, {"tools:read", "GET", "/servers/s/resources/file:///a", "", 403},
	} {
		status, h, body := d.do(c.method, c.path, c.body, as(c.scopes)...)
		if lacks := strings.Contains(body, "does not have the scope"); status != c.status || lacks != strings.Contains(h.Get("Www-Authenticate"), "insufficient_scope") {
			t.Errorf("%q: %s %s: %d %q %s", c.scopes, c.method, c.path, status, h.Get("Www-Authenticate"), body)
		}
	}
	// A token of one mount is invalid at the REST API, and a token in another header is ignored.
	if status, h, body := d.do("GET", "/servers", "", "Authorization", "Bearer "+is.Token(t, "ann", publicURL+"/mcp/s", "tools:read")); status != 401 || !strings.Contains(h.Get("Www-Authenticate"), "invalid_token") {
		t.Errorf("%d %v %s", status, h, body)
	}
	if status, _, body := d.do("GET", "/servers", "", "Authorization", "", "X-Api-Key", is.Token(t, "ann", publicURL, "tools:read")); status != 401 {
		t.Errorf("%d %s", status, body)
	}
	if status, _, body := d.do("GET", "/servers?access_token="+is.Token(t, "ann", publicURL, "tools:read"), "", "Authorization", ""); status != 401 {
		t.Errorf("%d %s", status, body)
	}
}

func TestBatchLinesAreCheckedAgainstTheSendersScopes(t *testing.T) {
	d, is := openWithIssuer(t)
	lines := `{"custom_id":"a","server":"s","tool":"read","arguments":{}}` + "\n" + `{"custom_id":"b","server":"s","tool":"write","arguments":{}}` + "\n"
	status, _, body := d.do("POST", "/batches?stream=true", lines, "Authorization", "Bearer "+is.Token(t, "ann", publicURL, "tools:call:@reads"))
	if status != 200 && status != 201 {
		t.Fatalf("%d %s", status, body)
	}
	for line := range strings.Lines(body) {
		var end struct {
			ID      string `json:"custom_id"`
			Problem *struct {
				Status int `json:"status"`
			} `json:"problem"`
		}
		if err := json.Unmarshal([]byte(line), &end); err != nil {
			t.Fatal(err)
		}
		if end.ID == "b" && !strings.Contains(line, "tools:call:s") || end.ID == "a" && strings.Contains(line, "forbidden") {
			t.Errorf("%s", line)
		}
	}
	if !strings.Contains(body, fmt.Sprintf("%q", "b")) {
		t.Errorf("%s", body)
	}
}
