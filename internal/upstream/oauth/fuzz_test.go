package oauth

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func FuzzParseChallenge(f *testing.F) {
	for _, s := range []string{
		`Bearer resource_metadata="https://a.example/x", scope="read write"`, `Bearer error="insufficient_scope", scope="a"`, `Basic realm="x", Bearer scope="y"`,
		`Bearer`, `"`, `Bearer a="\`, `Bearer a=b,`, `Bearer scope="a` + "\x00" + `b"`, `Bearer =`, `a="b", c`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		c := ParseChallenge(http.Header{"Www-Authenticate": {line}})
		for _, s := range c.Scopes {
			if s == "" || strings.ContainsAny(s, " \"\\\n\x00") {
				t.Errorf("%q gives the scope %q", line, s)
			}
		}
		if c.Error != "" && errorCode(c.Error) == "" {
			t.Errorf("%q gives the error %q", line, c.Error)
		}
	})
}

func FuzzReadToken(f *testing.F) {
	for _, s := range []string{
		`{"access_token":"a","token_type":"Bearer","expires_in":3600,"refresh_token":"r","scope":"x y"}`, `{"access_token":"a","token_type":"bearer","expires_in":"3600"}`,
		`{"error":"invalid_grant"}`, `{}`, `[]`, `{"access_token":"a","token_type":"Bearer","expires_in":1e99}`, `{"access_token":"a","token_type":"Bearer","expires_in":9223372036854775807}`,
	} {
		f.Add([]byte(s), 200)
	}
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text []byte, status int) {
		token, err := readToken(status, text, now)
		switch {
		case (token == nil) == (err == nil):
			t.Errorf("%q: %v, %v", text, token, err)
		case err == nil && (token.Access == "" || !visible(token.Access) || !visible(token.refresh)):
			t.Errorf("%q gives a token that cannot be sent", text)
		case err == nil && !token.Expires.IsZero() && (token.Expires.Before(now) || token.Expires.After(now.AddDate(11, 0, 0))):
			t.Errorf("%q expires at %v", text, token.Expires)
		}
	})
}
