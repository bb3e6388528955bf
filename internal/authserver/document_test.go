package authserver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authserver"
)

// documentServer serves the metadata documents of clients over TLS, on loopback.
type documentServer struct {
	*httptest.Server
	asked atomic.Int32
	serve atomic.Pointer[http.HandlerFunc]
}

func publish(t *testing.T) *documentServer {
	t.Helper()
	p := &documentServer{}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		(*p.serve.Load())(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *documentServer) id() string { return p.URL + "/client.json" }

// publish publishes a valid document with changes; nil removes a member.
func (p *documentServer) publish(changes map[string]any) {
	doc := map[string]any{"client_id": p.id(), "client_name": "Ada's editor", "redirect_uris": []string{back, "http://localhost/callback"}, "token_endpoint_auth_method": "none"}
	for name, v := range changes {
		if doc[name] = v; v == nil {
			delete(doc, name)
		}
	}
	p.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(doc)
	})
}

func (p *documentServer) answers(f http.HandlerFunc) { p.serve.Store(&f) }

func TestClientMetadataDocumentIsAccepted(t *testing.T) {
	p := publish(t)
	w, s := newInstallation(t, func(o *authserver.Options) {
		o.Hosts = []string{"127.0.0.1"}
		o.HTTP = p.Client()
		o.HTTP.CheckRedirect = authserver.NoRedirect
	})
	p.publish(nil)
	r, err := s.Ask(t.Context(), request("client_id", p.id(), "redirect_uri", "http://localhost:1234/callback"), &ada)
	if err != nil || r.Client.Name != "Ada's editor" || r.Client.Host() != strings.TrimPrefix(p.URL, "https://") {
		t.Fatalf("%+v, %v", r, err)
	}
	code := w.code(s, "client_id", p.id())
	if p.asked.Load() != 1 {
		t.Errorf("it was read %d times", p.asked.Load())
	}
	g := post(t, s.ServeToken, redemption(code, "client_id", p.id()))
	if g.Status != http.StatusOK {
		t.Fatalf("%+v", g)
	}
	if g = post(t, s.ServeToken, renewal(g.Refresh, "client_id", p.id())); g.Status != http.StatusOK {
		t.Errorf("%+v", g)
	}
	for name, change := range map[string]map[string]any{
		"the id of another":    {"client_id": "https://other.example/client.json"},
		"no id":                {"client_id": nil},
		"a secret":             {"client_secret": "x"},
		"a method with keys":   {"token_endpoint_auth_method": "private_key_jwt"},
		"no redirect URI":      {"redirect_uris": nil},
		"many redirect URIs":   {"redirect_uris": strings.Split(strings.Repeat(back+" ", 30), " ")},
		"a plain redirect URI": {"redirect_uris": []string{back, "http://app.example/"}},
		"a script":             {"redirect_uris": []string{back, "javascript:alert(1)"}},
		"a scheme of its own":  {"redirect_uris": []string{back, "cursor://callback"}},
		"a code in it":         {"redirect_uris": []string{back + "?code=x"}},
		"a long name":          {"client_name": strings.Repeat("x", 101)},
		"an invisible name":    {"client_name": "a\u202eb"},
		"a name that is none":  {"client_name": 1},
		"11 KiB":               {"x": strings.Repeat("x", 11<<10)},
	} {
		w.pass(10 * time.Minute)
		p.publish(change)
		if _, err := s.Ask(t.Context(), request("client_id", p.id()), &ada); err == nil || !strings.Contains(err.Error(), "cannot be verified") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, f := range map[string]http.HandlerFunc{
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://x.example/", http.StatusFound)
		},
		"an error": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
		"a page":   func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/html") },
		"an end":   func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "application/json") },
	} {
		w.pass(10 * time.Minute)
		p.answers(f)
		if _, err := s.Ask(t.Context(), request("client_id", p.id()), &ada); err == nil || !strings.Contains(err.Error(), "cannot be verified") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClientDocumentsOnPrivateAddressesAreRefused(t *testing.T) {
	p := publish(t)
	p.publish(nil)
	_, s := newInstallation(t, func(o *authserver.Options) { o.Hosts = []string{"*"} })
	_, port, _ := strings.Cut(strings.TrimPrefix(p.URL, "https://"), ":")
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "169.254.169.254", "10.0.0.1", "[::ffff:127.0.0.1]"} {
		id := "https://" + host + ":" + port + "/client.json"
		if _, err := s.Ask(t.Context(), request("client_id", id), &ada); err == nil {
			t.Errorf("%s is read", id)
		} else if host == "127.0.0.1" && !strings.Contains(err.Error(), "not public") {
			t.Error(err)
		}
	}
	if p.asked.Load() != 0 {
		t.Error("there was a request")
	}
}

func TestAPersonIsNotToldTheAddressOfAHost(t *testing.T) {
	p := publish(t)
	p.publish(nil)
	_, port, _ := strings.Cut(strings.TrimPrefix(p.URL, "https://"), ":")
	// Nothing listens at the port of a server that was closed.
	closed := httptest.NewTLSServer(nil)
	_, free, _ := strings.Cut(strings.TrimPrefix(closed.URL, "https://"), ":")
	closed.Close()
	for id, want := range map[string]string{
		"https://localhost:" + port + "/client.json": "its address is not public",
		"https://127.0.0.1:" + port + "/client.json": "the certificate of its host cannot be trusted",
		"https://127.0.0.1:" + free + "/client.json": "its host cannot be reached",
		"https://callyard-test.invalid/client.json":  "its host ", // without a name server it cannot be reached
	} {
		w, s := newInstallation(t, func(o *authserver.Options) { o.Hosts = []string{"*", "127.0.0.1"} })
		_, err := s.Ask(t.Context(), request("client_id", id), &ada)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", id, err)
			continue
		}
		for _, private := range []string{"127.0.0.1", "::1", "dial", "lookup", ":" + port, ":53"} {
			if strings.Contains(err.Error(), private) {
				t.Errorf("%s: the answer has %q: %v", id, private, err)
			}
		}
		if log := w.log.String(); !strings.Contains(log, "reading an address for the authorization server failed") || !strings.Contains(log, id) {
			t.Errorf("%s: the operator is not told: %s", id, log)
		}
	}
}

func TestInvalidClientIDURLIsNotFetched(t *testing.T) {
	p := publish(t)
	p.publish(nil)
	_, s := newInstallation(t, func(o *authserver.Options) {
		o.Hosts = []string{"127.0.0.1"}
		o.HTTP = p.Client()
	})
	for _, id := range []string{
		p.URL, p.URL + "/", p.id() + "?x", p.id() + "#x", p.URL + "/a/../client.json", p.URL + "/%2e/client.json", strings.Replace(p.id(), "https", "http", 1),
		strings.Replace(p.id(), "https://", "https://u@", 1), "https://other.example/client.json", p.id() + strings.Repeat("x", 600), p.id() + " ",
	} {
		if _, err := s.Ask(t.Context(), request("client_id", id), &ada); err == nil {
			t.Errorf("%q is taken", id)
		}
	}
	if p.asked.Load() != 0 {
		t.Error("there was a request")
	}
}

func FuzzReadDocument(f *testing.F) {
	f.Add(`{"client_id":"https://a.example/c","redirect_uris":["https://a.example/"]}`)
	f.Add(`{"client_id":"https://a.example/c","redirect_uris":["http://127.0.0.1:1/"],"client_name":"x"}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := authserver.ReadDocument("https://a.example/c", []byte(text))
		if err != nil {
			return
		}
		for _, r := range c.Redirects {
			u, err := url.Parse(r)
			if err != nil || u.Scheme != "https" && (u.Scheme != "http" || u.Hostname() != "localhost" && u.Hostname() != "127.0.0.1" && !strings.Contains(u.Hostname(), ":") && !strings.HasPrefix(u.Hostname(), "127.")) || u.User != nil || u.Fragment != "" {
				t.Errorf("%q can be registered", r)
			}
		}
	})
}

func FuzzGoodRedirect(f *testing.F) {
	for _, s := range []string{back, "http://127.0.0.1:1/x?y=z", "https://a@b/", "https://a\\@b/", "http://[::1]/", "HTTPS://a/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, address string) {
		if !authserver.GoodRedirect(address) {
			return
		}
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.Query().Has("code") || strings.ContainsAny(address, "\\ \t\r\n#") {
			t.Errorf("%q can be registered", address)
		}
		// Additional parameters do not change the target.
		v, err := url.Parse(address + "?iss=x")
		if err != nil || v.Host != u.Host || v.Path != u.Path {
			t.Errorf("%q leads elsewhere with a query", address)
		}
	})
}
