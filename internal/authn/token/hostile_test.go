package token_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"hash"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/callyard/callyard/internal/authn/token"
	"github.com/callyard/callyard/internal/authn/token/tokentest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	door     = "https://door.example"
	resource = door + "/mcp/demo"
)

// hostile makes tokens that must be refused, by what is wrong with them.
type hostile struct {
	t      *testing.T
	is     *tokentest.Issuer
	other  *tokentest.Issuer
	tokens map[string]string
}

func (h *hostile) add(name, raw string) {
	h.t.Helper()
	if h.tokens[name] != "" {
		h.t.Fatalf("two tokens are called %q", name)
	}
	h.tokens[name] = raw
}

// claims adds a token that is good but for the changes.
func (h *hostile) claims(name string, change tokentest.Claims) {
	h.t.Helper()
	h.add(name, h.is.Key().Sign(h.t, h.is.Claims("ann", resource, change), nil))
}

func (h *hostile) header(name string, change tokentest.Header) {
	h.t.Helper()
	h.add(name, h.is.Key().Sign(h.t, h.is.Claims("ann", resource, nil), change))
}

func (h *hostile) good() string { return h.is.Token(h.t, "ann", resource, "tools:read") }

func encode(text []byte) string { return base64.RawURLEncoding.EncodeToString(text) }

func (h *hostile) algorithms() {
	parts := strings.Split(h.good(), ".")
	for _, alg := range []string{"none", "None", "NONE", "nOnE", "", "null", "HS1", "ES256K", "RSA1_5", "A256GCM", "dir", "es256", " ES256", "ES256 ", "ES384", "ES512", "RS256", "PS256", "EdDSA", "Ed25519", "ML-DSA-44"} {
		head := encode([]byte(`{"alg":"` + alg + `","kid":"key-1","typ":"at+jwt"}`))
		h.add("alg "+alg+", no signature", head+"."+parts[1]+".")
		h.add("alg "+alg+", some signature", head+"."+parts[1]+"."+parts[2])
	}
	for _, raw := range []string{`{"kid":"key-1","typ":"at+jwt"}`, `{"alg":null,"typ":"at+jwt"}`, `{"alg":1,"typ":"at+jwt"}`, `{"alg":["ES256"],"typ":"at+jwt"}`, `{"ALG":"ES256","kid":"key-1","typ":"at+jwt"}`} {
		h.add("header "+raw, h.is.Key().SignRaw(h.t, []byte(raw), h.payload(nil)))
	}
	public := h.is.Key().Public()
	asJWK, _ := public.MarshalJSON()
	der, err := x509.MarshalPKIXPublicKey(public.Key)
	if err != nil {
		h.t.Fatal(err)
	}
	for secretName, secret := range map[string][]byte{
		"JWK": asJWK, "DER": der, "PEM": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), "empty": nil, "set": tokentest.KeySet(h.is.Key()), "kid": []byte("key-1"),
	} {
		for alg, f := range map[string]func() hash.Hash{"HS256": sha256.New, "HS384": sha512.New384, "HS512": sha512.New} {
			input := encode([]byte(`{"alg":"`+alg+`","kid":"key-1","typ":"at+jwt"}`)) + "." + encode(h.payload(nil))
			mac := hmac.New(f, secret)
			mac.Write([]byte(input))
			h.add(alg+" with the public key as "+secretName, input+"."+encode(mac.Sum(nil)))
		}
	}
}

func (h *hostile) payload(change tokentest.Claims) []byte {
	raw, err := json.Marshal(h.is.Claims("ann", resource, change))
	if err != nil {
		h.t.Fatal(err)
	}
	return raw
}

func (h *hostile) audiences() {
	for _, aud := range []any{
		nil, "", []string{}, 1, true, map[string]any{resource: true}, []any{resource, 1}, "callyard-other", "app",
		"https://door.example.evil", "https://door.example.evil/mcp/demo", "https://door.exampl", "https://door.example@evil.example/mcp/demo", "https://evil.example/https://door.example",
		"http://door.example/mcp/demo", "https://DOOR.example/mcp/demo", "https://door.example:444/mcp/demo", "//door.example/mcp/demo", "door.example", "/mcp/demo", "/",
		door + "/mcp/demo2", door + "/mcp/dem", door + "/mcp/demo/more", door + "/mcp/other", door + "/mcp/demo?x=1", door + "/mcp/demo#x", door + "/mcp/%64emo", door + "/MCP/demo", door + "/mcp/../mcp/demo", "*", "https://*", "https:", "https://",
		[]string{"https://a.example", "https://b.example"},
	} {
		h.claims(fmt.Sprintf("aud %v", aud), tokentest.Claims{"aud": aud})
	}
	h.claims("aud in another letter case", tokentest.Claims{"aud": nil, "AUD": resource})
}

func (h *hostile) issuers() {
	for _, iss := range []any{nil, "", h.is.URL + "/", strings.ToUpper(h.is.URL), h.is.URL + "/.well-known", []string{h.is.URL}, 1, "https://evil.example", h.is.URL + "?", h.is.URL + "\x00", "localhost"} {
		h.claims(fmt.Sprintf("iss %q", iss), tokentest.Claims{"iss": iss})
	}
	h.claims("iss of another entry, own key", tokentest.Claims{"iss": h.other.URL})
	h.add("own iss, key of another entry", h.other.Key().Sign(h.t, h.is.Claims("ann", resource, nil), nil))
	stranger := tokentest.NewKey(h.t, "key-1", jose.ES256)
	h.add("a stranger's key under our kid", stranger.Sign(h.t, h.is.Claims("ann", resource, nil), nil))
	for _, alg := range []jose.SignatureAlgorithm{jose.RS256, jose.EdDSA} {
		k := tokentest.NewKey(h.t, "key-1", alg)
		h.add("a stranger's "+string(alg)+" key under our kid", k.Sign(h.t, h.is.Claims("ann", resource, nil), nil))
		public := k.Public()
		h.add("a stranger's "+string(alg)+" key in the header", k.Sign(h.t, h.is.Claims("ann", resource, nil), tokentest.Header{"jwk": &public}))
	}
	public := stranger.Public()
	h.add("a stranger's key in the header", stranger.Sign(h.t, h.is.Claims("ann", resource, nil), tokentest.Header{"jwk": &public}))
	h.add("a stranger's key in the header, no kid", stranger.Sign(h.t, h.is.Claims("ann", resource, nil), tokentest.Header{"jwk": &public, "kid": nil}))
}

func (h *hostile) headers() {
	for _, typ := range []any{nil, "JWT", "jwt", "dpop+jwt", "logout+jwt", "secevent+jwt", "id+jwt", "oauth-id-jag+jwt", "application/jwt", "at+jwt ", "at", "", 1, []string{"at+jwt"}, "text/at+jwt", "application/application/at+jwt"} {
		h.header(fmt.Sprintf("typ %v", typ), tokentest.Header{"typ": typ})
	}
	for _, kid := range []any{"key-2", "../../etc/passwd", "/dev/null", "' OR '1'='1", "http://evil.example/keys", "key-1\x00", "KEY-1", " key-1", 1, true, []string{"key-1"}, map[string]any{"a": 1}, strings.Repeat("k", 4000), "file:///etc/passwd", "$(id)", "key-1,key-2"} {
		h.header(fmt.Sprintf("kid %.40v", kid), tokentest.Header{"kid": kid})
	}
	own := h.is.Key().Public()
	for name, value := range map[jose.HeaderKey]any{"jku": "https://evil.example/keys", "x5u": "https://evil.example/cert", "x5c": []string{"MIIB"}, "jwk": &own, "crit": []string{"exp"}, "b64": false, "zip": "DEF", "cty": "JWT", "enc": "A256GCM", "epk": map[string]any{}} {
		h.header("header "+string(name), tokentest.Header{name: value})
	}
	h.header("crit with b64", tokentest.Header{"crit": []string{"b64"}, "b64": false})
	h.header("crit empty", tokentest.Header{"crit": []string{}})
	for _, raw := range []string{
		`{"alg":"ES256","alg":"none","kid":"key-1","typ":"at+jwt"}`, `{"alg":"none","alg":"ES256","kid":"key-1","typ":"at+jwt"}`, `{"alg":"ES256","kid":"key-1","typ":"JWT","typ":"at+jwt"}`,
		`{"alg":"ES256","kid":"other","kid":"key-1","typ":"at+jwt"}`, `[]`, `null`, `"ES256"`, ``, `{`, `{"alg":"ES256","kid":"key-1","typ":"at+jwt"}x`,
		`{"alg":"ES256","kid":"key-1","typ":"at+jwt","x":` + strings.Repeat("[", 4000) + strings.Repeat("]", 4000) + `,"crit":["x"]}`,
	} {
		h.add(fmt.Sprintf("raw header %.60s", raw), h.is.Key().SignRaw(h.t, []byte(raw), h.payload(nil)))
	}
}

func (h *hostile) times() {
	now := time.Now()
	in := func(d time.Duration) any { return now.Add(d).Unix() }
	for name, c := range map[string]tokentest.Claims{
		"exp missing": {"exp": nil}, "exp a minute ago": {"exp": in(-time.Minute)}, "exp a year ago": {"exp": in(-365 * 24 * time.Hour)}, "exp 0": {"exp": 0}, "exp negative": {"exp": -1}, "exp text": {"exp": fmt.Sprint(in(time.Hour))},
		"exp true": {"exp": true}, "exp list": {"exp": []any{in(time.Hour)}}, "exp object": {"exp": map[string]any{}}, "exp huge": {"exp": 1e300}, "exp in milliseconds": {"exp": now.Add(time.Hour).UnixMilli()}, "exp in two days": {"exp": in(48 * time.Hour)},
		"exp in a hundred years": {"exp": in(100 * 365 * 24 * time.Hour)}, "a long life without iat": {"exp": in(48 * time.Hour), "iat": nil}, "a long life that began long ago": {"iat": in(-48 * time.Hour)},
		"nbf in an hour": {"nbf": in(time.Hour)}, "nbf text": {"nbf": "1"}, "nbf null": {"nbf": json.RawMessage("null")}, "nbf huge": {"nbf": 1e300}, "nbf negative": {"nbf": -5},
		"iat in an hour": {"iat": in(time.Hour)}, "iat text": {"iat": "1"}, "iat in milliseconds": {"iat": now.UnixMilli()}, "iat negative": {"iat": -5},
	} {
		h.claims(name, c)
	}
}

func (h *hostile) contents() {
	for _, sub := range []any{nil, "", " ", " ann", "ann ", "a\nb", "a\x00b", "a\u202eb", 1, true, []string{"ann"}, map[string]any{"id": "ann"}, strings.Repeat("s", 300)} {
		h.claims(fmt.Sprintf("sub %.20q", sub), tokentest.Claims{"sub": sub})
	}
	for name, c := range map[string]tokentest.Claims{
		"an ID token with nonce": {"nonce": "n"}, "an ID token with at_hash": {"at_hash": "h"}, "an ID token with c_hash": {"c_hash": "h"}, "a logout token": {"events": map[string]any{}},
		"token_use id": {"token_use": "id"}, "token_use refresh": {"token_use": "refresh"},
		"bound by DPoP": {"cnf": map[string]any{"jkt": "x"}}, "bound by mTLS": {"cnf": map[string]any{"x5t#S256": "x"}}, "bound to nothing": {"cnf": map[string]any{}}, "bound by text": {"cnf": "x"},
	} {
		h.claims(name, c)
	}
	k := h.is.Key()
	good := string(h.payload(nil))
	for name, payload := range map[string]string{
		"two exp": strings.Replace(good, `{`, `{"exp":1,`, 1), "two iss": strings.Replace(good, `{`, `{"iss":"https://evil.example",`, 1), "two aud": strings.Replace(good, `{`, `{"aud":"x",`, 1), "two sub": strings.Replace(good, `{`, `{"sub":"root",`, 1),
		"a list": "[" + good + "]", "a text": `"` + encode([]byte(good)) + `"`, "null": "null", "a number": "1", "nothing": "", "half": good[:len(good)/2], "two documents": good + good, "trailing text": good + "x",
		"deep": strings.Replace(good, `{`, `{"x":`+strings.Repeat(`[`, 11_000)+`,`, 1), "invalid UTF-8": strings.Replace(good, `"ann"`, "\"a\xffn\"", 1), "NaN": strings.Replace(good, `"exp":`, `"exp":NaN,"x":`, 1), "a nested token": h.good(),
		"large": strings.Replace(good, `{`, `{"x":"`+strings.Repeat("x", token.MaxLength)+`",`, 1),
	} {
		h.add("payload: "+name, k.SignBytes(h.t, []byte(payload), nil))
	}
}

func (h *hostile) shapes() {
	good := h.good()
	parts := strings.Split(good, ".")
	sig, _ := base64.RawURLEncoding.DecodeString(parts[2])
	changed, _ := json.Marshal(h.is.Claims("root", resource, tokentest.Claims{"scope": "admin"}))
	another := strings.Split(h.is.Token(h.t, "bob", resource, "admin"), ".")
	for name, raw := range map[string]string{
		"empty": "", "dots": "..", "two parts": parts[0] + "." + parts[1], "two parts and a dot": parts[0] + "." + parts[1] + ".", "four parts": good + ".x", "five parts": good + "..", "twice": good + good,
		"padded": parts[0] + "=." + parts[1] + "." + parts[2] + "=", "a line break inside": parts[0] + "\n." + parts[1] + "." + parts[2], "a space inside": parts[0] + ". " + parts[1] + "." + parts[2], "a space before": " " + good, "a NUL at the end": good + "\x00",
		"standard base64": parts[0] + "+/." + parts[1] + "." + parts[2], "no header": "." + parts[1] + "." + parts[2], "no payload": parts[0] + ".." + parts[2],
		"other payload": parts[0] + "." + encode(changed) + "." + parts[2], "other signature": parts[0] + "." + parts[1] + "." + another[2], "other payload, its signature, other header": encode([]byte(`{"alg":"ES256","typ":"at+jwt","kid":"key-1"}`)) + "." + another[1] + "." + another[2],
		"signature of zeros": parts[0] + "." + parts[1] + "." + encode(make([]byte, 64)), "signature too long": parts[0] + "." + parts[1] + "." + encode(append(bytes.Clone(sig), 0)), "signature too short": parts[0] + "." + parts[1] + "." + encode(sig[:63]),
		"signature of ones": parts[0] + "." + parts[1] + "." + encode(bytes.Repeat([]byte{0xff}, 64)), "JSON": `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
	} {
		h.add("shape: "+name, raw)
	}
	for n := range 16 {
		flipped := bytes.Clone(sig)
		flipped[n*4] ^= 1
		h.add(fmt.Sprintf("a changed byte of the signature: %d", n*4), parts[0]+"."+parts[1]+"."+encode(flipped))
	}
	for n := 0; n < len(parts[1]); n += 20 {
		c := byte('A')
		if parts[1][n] == c {
			c = 'B'
		}
		h.add(fmt.Sprintf("a changed character of the payload: %d", n), parts[0]+"."+parts[1][:n]+string(c)+parts[1][n+1:]+"."+parts[2])
	}
}

func TestHostileTokensAreNotAccepted(t *testing.T) {
	h := &hostile{t: t, is: tokentest.Start(t), other: tokentest.Start(t), tokens: make(map[string]string)}
	v, err := token.New([]settings.Issuer{h.is.Entry("idp"), h.other.Entry("other")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for _, f := range []func(){h.algorithms, h.audiences, h.issuers, h.headers, h.times, h.contents, h.shapes} {
		f()
	}
	if len(h.tokens) < 200 {
		t.Errorf("%d tokens, want at least 200", len(h.tokens))
	}
	t.Logf("%d hostile tokens", len(h.tokens))
	for name, raw := range h.tokens {
		for range 2 { // nothing of a refusal is remembered as good
			got, err := v.Verify(context.Background(), raw, resource)
			if err == nil {
				t.Errorf("%s: accepted as %+v", name, got.Principal)
				continue
			}
			if kind := schema.KindOf(err); kind != schema.KindUnauthenticated {
				t.Errorf("%s: %s: %v", name, kind, err)
			}
			for part := range strings.SplitSeq(raw, ".") {
				if len(part) > 12 && strings.Contains(err.Error(), part) {
					t.Errorf("%s: the error has a part of the token: %v", name, err)
				}
			}
		}
	}
	// The tokens above are refused for what is wrong with them: without it they are good.
	for name, raw := range h.wanted() {
		if _, err := v.Verify(context.Background(), raw, resource); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// wanted are tokens that must be accepted.
func (h *hostile) wanted() map[string]string {
	k := h.is.Key()
	with := func(change tokentest.Claims, header tokentest.Header) string {
		return k.Sign(h.t, h.is.Claims("ann", resource, change), header)
	}
	tokens := map[string]string{
		"good": h.good(), "of the other issuer": h.other.Token(h.t, "ann", resource, ""),
		"for the whole front door": with(tokentest.Claims{"aud": door}, nil), "with a slash at the end": with(tokentest.Claims{"aud": door + "/"}, nil), "for all servers": with(tokentest.Claims{"aud": door + "/mcp"}, nil),
		"several audiences": with(tokentest.Claims{"aud": []string{"https://a.example", resource}}, nil),
		"long type":         with(nil, tokentest.Header{"typ": "application/at+jwt"}), "type in capitals": with(nil, tokentest.Header{"typ": "AT+JWT"}), "no kid": with(nil, tokentest.Header{"kid": nil}),
		"expired within the skew": with(tokentest.Claims{"exp": time.Now().Add(-5 * time.Second).Unix(), "iat": time.Now().Add(-time.Minute).Unix()}, nil), "clock ahead": with(tokentest.Claims{"iat": time.Now().Add(5 * time.Second).Unix(), "nbf": time.Now().Add(5 * time.Second).Unix()}, nil),
	}
	return tokens
}
