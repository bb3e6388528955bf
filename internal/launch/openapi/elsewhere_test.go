package openapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch/adapt"
)

// unreachableService is a service that nobody must reach.
func unreachableService(t *testing.T) (address string) {
	var hits atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(func() {
		s.Close()
		if n := hits.Load(); n > 0 {
			t.Errorf("%d requests went elsewhere", n)
		}
	})
	return s.URL
}

func TestReferencesToOtherDocumentsAreNotFollowed(t *testing.T) {
	elsewhere := unreachableService(t)
	secret := write(t, `{"type":"string","description":"a file of this machine"}`)
	for _, ref := range []string{elsewhere + "/s.json", elsewhere + "/s.json#/a", secret, "file://" + secret, "../../../etc/passwd", "s.json", "//" + strings.TrimPrefix(elsewhere, "http://") + "/s"} {
		for _, where := range []string{
			`{"/a":{"get":{"operationId":"a","parameters":[{"name":"q","in":"query","schema":{"$ref":%q}}],"responses":{"200":{"description":"ok"}}}}}`,
			`{"/a":{"get":{"operationId":"a","parameters":[{"$ref":%q}],"responses":{"200":{"description":"ok"}}}}}`,
			`{"/a":{"get":{"operationId":"a","responses":{"200":{"$ref":%q}}}}}`,
			`{"/a":{"$ref":%q}}`,
			`{"/a":{"get":{"operationId":"a","description":{"$ref":%q},"responses":{"200":{"description":"ok"}}}}}`,
		} {
			for _, version := range []string{"3.0.3", "3.1.0"} {
				document := fmt.Sprintf(`{"openapi":%q,"info":{"title":"t","version":"1"},"paths":%s}`, version, fmt.Sprintf(where, ref))
				if got := fault(t, Config{ID: "x", OpenAPI: config.OpenAPI{Document: write(t, document), BaseURL: "https://h.invalid"}}); !strings.Contains(got, "refers to another document") {
					t.Errorf("%s: %s", document, got)
				}
			}
		}
	}
}

func TestErrorNamesTheServerOfFewOperationsAndCountsTheOthers(t *testing.T) {
	paths := make(map[string]any)
	for i := range 300 {
		paths[fmt.Sprintf("/a%03d", i)] = map[string]any{
			"servers": []any{map[string]any{"url": "https://api.elsewhere.invalid"}},
			"get":     map[string]any{"responses": map[string]any{"200": map[string]any{"description": "ok"}}},
		}
	}
	document, err := json.Marshal(map[string]any{"openapi": "3.0.3", "info": map[string]any{"title": "t", "version": "1"}, "paths": paths})
	if err != nil {
		t.Fatal(err)
	}
	got := fault(t, Config{ID: "x", OpenAPI: config.OpenAPI{Document: write(t, string(document)), BaseURL: "https://h.invalid"}})
	want := "GET /a000 is skipped: it has its own server (https://api.elsewhere.invalid:443), which is not at https://h.invalid:443."
	if !strings.Contains(got, want) || !strings.HasSuffix(got, "There are 295 more such messages.") || strings.Contains(got, "/a005 ") {
		t.Errorf("error of %d bytes: %.1000s", len(got), got)
	}
}

func FuzzDocument(f *testing.F) {
	for _, name := range []string{"testdata/petstore.yaml", "testdata/shop.json"} {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, paths := range []string{
		`{"/a":null}`, `{"/a":{"get":null}}`, `{"/a":{"get":{"parameters":[null]}}}`, `{"/a":{"get":{"requestBody":{"content":{"application/json":null}}}}}`,
		`{"/{a}":{"get":{"parameters":[{"name":"a","in":"path","content":{}}],"responses":{"200":null}}}}`, `{"/a":{"get":{"security":[null],"servers":[null]}}}`,
		`{"/a":{"$ref":"#/paths/~1a"}}`, `{"/a":{"get":{"parameters":[{"name":"a","in":"query","schema":{"$ref":"#/paths/~1a/get/parameters/0/schema"}}]}}}`,
	} {
		f.Add(`{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":` + paths + `}`)
	}
	base, _ := url.Parse("https://h.invalid/v1")
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := parse(t.Context(), []byte(text))
		if err != nil {
			return
		}
		b := &builder{cfg: &Config{ID: "x"}, doc: doc, base: base}
		if b.build() != nil {
			return
		}
		for _, op := range b.operations {
			if !json.Valid(op.tool) || adapt.OriginOf(op.base) != adapt.OriginOf(base) {
				t.Fatalf("%s %s: %s", op.method, op.template, op.tool)
			}
		}
	})
}

func TestNoRequestLeavesTheNamedHost(t *testing.T) {
	elsewhere := unreachableService(t)
	srv := newService(t)
	srv.answers(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/away":
			http.Redirect(w, r, elsewhere+"/x", http.StatusFound)
		case "/v1/near":
			http.Redirect(w, r, "/v1/there", http.StatusTemporaryRedirect)
		}
	})
	document := strings.ReplaceAll(`{"openapi":"3.1.0","info":{"title":"t","version":"1"},"servers":[{"url":"ELSEWHERE"}],"paths":{
		"/away":{"get":{"operationId":"away","responses":{"200":{"description":"ok"}}},"post":{"operationId":"send","responses":{"200":{"description":"ok"}}}},
		"/near":{"get":{"operationId":"near","responses":{"200":{"description":"ok"}}},"put":{"operationId":"put","responses":{"200":{"description":"ok"}}}},
		"/own":{"servers":[{"url":"ELSEWHERE"}],"get":{"operationId":"own","responses":{"200":{"description":"ok"}}}},
		"/mine":{"get":{"operationId":"mine","servers":[{"url":"//evil.invalid/x"}],"responses":{"200":{"description":"ok"}}}},
		"/user":{"get":{"operationId":"user","servers":[{"url":"http://a:b@evil.invalid"}],"responses":{"200":{"description":"ok"}}}},
		"/file":{"get":{"operationId":"file","servers":[{"url":"file:///etc"}],"responses":{"200":{"description":"ok"}}}},
		"/next":{"get":{"operationId":"next","servers":[{"url":"/v2"}],"responses":{"200":{"description":"ok"}}}},
		"@evil.invalid/x":{"get":{"operationId":"at","responses":{"200":{"description":"ok"}}}},
		"//evil.invalid/x":{"get":{"operationId":"slashes","responses":{"200":{"description":"ok"}}}},
		"/a/../../b":{"get":{"operationId":"dots","responses":{"200":{"description":"ok"}}}}
	}}`, "ELSEWHERE", elsewhere)
	s := open(t, Config{ID: "x", OpenAPI: config.OpenAPI{Document: write(t, document), BaseURL: srv.URL + "/v1/"}})
	o, err := s.Offer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(o.Notes, "\n")
	for _, left := range []string{"/own", "/mine", "/user", "/file", "@evil.invalid/x", "/a/../../b"} {
		if !strings.Contains(notes, "GET "+left+" is skipped") {
			t.Errorf("%s is not left out: %s", left, notes)
		}
	}
	if r := call(t, s, "away", `{}`); !r.IsError || !strings.Contains(r.Content[0].Text, `redirects to another origin are not followed. If this is correct, set "base_url" to the new address.`) {
		t.Errorf("%+v", r)
	}
	if r := call(t, s, "send", `{}`); !r.IsError || r.Meta.HTTP.Status != http.StatusFound {
		t.Errorf("%+v", r)
	}
	srv.last(t)
	callOK(t, s, "near", `{}`)
	if got := srv.last(t); got.Target != "/v1/there" {
		t.Errorf("it went to %s", got.Target)
	}
	if r := call(t, s, "put", `{}`); !r.IsError || r.Meta.HTTP.Status != http.StatusTemporaryRedirect || srv.last(t).Target != "/v1/near" {
		t.Errorf("%+v", r)
	}
	callOK(t, s, "next", `{}`)
	if got := srv.last(t); got.Target != "/v2/next" {
		t.Errorf("it went to %s", got.Target)
	}
	if op := current(t, s).byName["slashes"]; op != nil {
		callOK(t, s, "slashes", `{}`)
		if got := srv.last(t); got.Target != "/v1//evil.invalid/x" {
			t.Errorf("it went to %s", got.Target)
		}
	}
}

func TestPathParametersCannotChangeThePath(t *testing.T) {
	srv := newService(t)
	s := petstore(t, srv)
	for _, bad := range []string{
		"", ".", "..", "../admin", "..%2fadmin", "%2e%2e", "%252e%252e%252fadmin", "a/../../admin", `..\admin`, "..;x", ".;/..", "a/..;b=c/admin", "x/.",
	} {
		quoted, _ := json.Marshal(bad)
		if said := refused(t, s, srv, "getPet", `{"petId":`+string(quoted)+`}`); bad != "" && len(bad) > 2 && strings.Contains(said, bad) {
			t.Errorf("the value is repeated: %s", said)
		}
	}
	for _, bad := range []string{`null`, `{}`, `[]`, `[null]`, `{"a":{"b":1}}`} {
		refused(t, s, srv, "getPet", `{"petId":`+bad+`}`)
	}
	refused(t, s, srv, "getPet", `{}`)
	for value, want := range map[string]string{
		"...": "/v1/pets/...", "a..b": "/v1/pets/a..b", ".a": "/v1/pets/.a", "?x#y": "/v1/pets/%3Fx%23y", "http://evil.invalid": "/v1/pets/http%3A%2F%2Fevil.invalid",
		"@evil.invalid": "/v1/pets/%40evil.invalid", "%00": "/v1/pets/%2500", "\r\n": "/v1/pets/%0D%0A",
	} {
		quoted, _ := json.Marshal(value)
		callOK(t, s, "getPet", `{"petId":`+string(quoted)+`}`)
		if got := srv.last(t); got.Target != want {
			t.Errorf("%q went to %s, want %s", value, got.Target, want)
		}
	}
}

func TestHeaderAndCookieInjectionIsPrevented(t *testing.T) {
	srv := newService(t)
	s := petstore(t, srv)
	for _, bad := range []string{`"a\r\nX-Evil: 1"`, `"a\nb"`, `"a\u0000b"`, `"a\u007f"`} {
		refused(t, s, srv, "listPets", `{"X-Trace":`+bad+`}`)
	}
	callOK(t, s, "listPets", `{"session":"a; crumb=mine\r\nX: y"}`)
	if got := srv.last(t); got.Header.Get("Cookie") != "session=a%3B%20crumb%3Dmine%0D%0AX%3A%20y" || got.Header.Get("X") != "" {
		t.Errorf("headers %v", got.Header)
	}
}

func TestFetchedDocumentMayOnlyNameItsOwnOrigin(t *testing.T) {
	elsewhere := unreachableService(t)
	const rest = `,"info":{"title":"t","version":"1"},"paths":{"/a":{"get":{"operationId":"a","responses":{"200":{"description":"ok"}}}}}}`
	serve := func(servers string) (*service, config.OpenAPI) {
		srv := newService(t)
		srv.answers(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/openapi.json" {
				w.Header().Set("Etag", `"1"`)
				if r.Header.Get("If-None-Match") == `"1"` {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				fmt.Fprint(w, `{"openapi":"3.0.0"`+servers+rest)
			}
		})
		return srv, config.OpenAPI{Document: srv.URL + "/openapi.json"}
	}
	for servers, want := range map[string]string{``: "/a", `,"servers":[{"url":"/v7/"}]`: "/v7/a", `,"servers":[{"url":"api"}]`: "/api/a"} {
		srv, cfg := serve(servers)
		s := open(t, Config{ID: "x", OpenAPI: cfg, Headers: map[string]string{"Authorization": "Bearer b"}})
		if got := srv.last(t); got.Header.Get("Authorization") != "Bearer b" {
			t.Errorf("the document was asked for with %v", got.Header)
		}
		if _, err := s.Offer(t.Context()); err != nil || srv.last(t).Header.Get("If-None-Match") == "" {
			t.Errorf("the document was fetched again in full; %v", err)
		}
		callOK(t, s, "a", `{}`)
		if got := srv.last(t); got.Target != want {
			t.Errorf("%s: it went to %s, want %s", servers, got.Target, want)
		}
	}
	for _, servers := range []string{`,"servers":[{"url":"` + elsewhere + `"}]`, `,"servers":[{"url":"ftp://h"}]`, `,"servers":[{"url":"/{x}"}]`} {
		_, cfg := serve(servers)
		if got := fault(t, Config{ID: "x", OpenAPI: cfg}); !strings.Contains(got, `add "base_url"`) {
			t.Errorf("%s: %s", servers, got)
		}
	}
	// The document of somebody else gets no credentials of the service.
	srv, cfg := serve(``)
	cfg.BaseURL = "https://api.invalid"
	open(t, Config{ID: "x", OpenAPI: cfg, Headers: map[string]string{"Authorization": "Bearer b"}})
	if got := srv.last(t); got.Header.Get("Authorization") != "" {
		t.Errorf("the document was asked for with %v", got.Header)
	}
	// Nor is it fetched from anywhere else than was said.
	away := newService(t)
	away.answers(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere, http.StatusFound) })
	if got := fault(t, Config{ID: "x", OpenAPI: config.OpenAPI{Document: away.URL + "/openapi.json"}}); !strings.Contains(got, `not followed. If this is correct, set "openapi" to the new address.`) {
		t.Error(got)
	}
}
