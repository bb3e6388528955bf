package httpguard_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/kit/httpguard"
)

func policy(t *testing.T, keys bool, origins ...string) *httpguard.Policy {
	t.Helper()
	p, err := httpguard.New(origins, func() bool { return keys })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func request(method, host string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, "http://"+host+"/servers", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func TestOnlyAllowedOriginsMayUseTheFrontDoor(t *testing.T) {
	p := policy(t, true, "https://App.example.com:443", "http://localhost:3000")
	for _, c := range []struct {
		name  string
		r     *http.Request
		allow bool
	}{
		{"a program", request("POST", "door.example"), true},
		{"a listed page", request("POST", "door.example", "Origin", "https://app.example.com", "Sec-Fetch-Site", "cross-site"), true},
		{"another listed page", request("DELETE", "door.example", "Origin", "http://localhost:3000", "Sec-Fetch-Site", "cross-site"), true},
		{"a page of the front door", request("POST", "door.example", "Origin", "https://door.example", "Sec-Fetch-Site", "same-origin"), true},
		{"another port", request("POST", "door.example", "Origin", "http://localhost:3001"), false},
		{"another scheme", request("POST", "door.example", "Origin", "http://app.example.com"), false},
		{"a name that begins like a listed one", request("POST", "door.example", "Origin", "https://app.example.com.evil.example"), false},
		{"a page without an origin", request("POST", "door.example", "Origin", "null"), false},
		{"a page that reads", request("GET", "door.example", "Origin", "https://evil.example"), false},
		{"a form of another site", request("POST", "door.example", "Sec-Fetch-Site", "cross-site"), false},
	} {
		if e := p.Check(c.r); (e == nil) != c.allow {
			t.Errorf("%s: %v", c.name, e)
		}
	}
}

func TestWithoutKeysOnlyLoopbackHostsAreServed(t *testing.T) {
	for host, allow := range map[string]bool{
		"localhost": true, "LOCALHOST:8080": true, "app.localhost": true, "127.0.0.1:1": true, "127.9.9.9": true, "[::1]:8080": true, "localhost.": true,
		"localhost.evil.example": false, "127.0.0.1.evil.example": false, "192.0.2.1": false, "evil": false,
	} {
		if e := policy(t, false).Check(request("GET", host)); (e == nil) != allow {
			t.Errorf("%s: %v", host, e)
		}
		if e := policy(t, true).Check(request("GET", host)); e != nil {
			t.Errorf("%s, with keys: %v", host, e)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"https://app.example.com", "http://localhost:3000", "http://[::1]:80", "*", "null", "https://a/", "https://*.example.com", "file:///x", "https://u@h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := httpguard.Parse(text)
		if err != nil {
			return
		}
		if again, err := httpguard.Parse(o); err != nil || again != o {
			t.Errorf("%q became %q, which becomes %q (%v)", text, o, again, err)
		}
		if _, err := httpguard.New([]string{text}, func() bool { return true }); err != nil {
			t.Errorf("%q is an origin that cannot be allowed: %v", text, err)
		}
	})
}

func TestInvalidOriginIsRefusedWithAnExample(t *testing.T) {
	for _, text := range []string{"", "*", "null", "app.example.com", "https://app.example.com/", "https://app.example.com/path", "https://*.example.com", "ftp://a", "https://", "https://u:p@h", "https://a?b", "https://a#", "https://a:port"} {
		if o, err := httpguard.Parse(text); err == nil || !strings.Contains(err.Error(), "https://app.example.com") {
			t.Errorf("%q: %q, %v", text, o, err)
		}
	}
}
