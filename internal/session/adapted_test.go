package session

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/adapt"
	"github.com/callyard/callyard/internal/launch/openapi"
	"github.com/callyard/callyard/pkg/schema"
)

const adaptedDocument = `{"openapi":"3.1.0","info":{"title":"Calm","version":"7"},"paths":{"/{way}":{"post":{"operationId":"go",
	"parameters":[{"name":"way","in":"path","required":true,"schema":{"type":"string"}}],
	"requestBody":{"content":{"application/json":{"schema":{}}}},"responses":{"200":{"description":"ok"}}}}}}`

// adapted returns the configuration of a REST service.
func adapted(t *testing.T, address string) Config {
	t.Helper()
	path := t.TempDir() + "/openapi.json"
	if err := os.WriteFile(path, []byte(adaptedDocument), 0o600); err != nil {
		t.Fatal(err)
	}
	src := openapi.New(openapi.Config{ID: "rest", OpenAPI: config.OpenAPI{Document: path, BaseURL: address}, MaxResult: 1 << 20})
	return Config{Spec: launch.Spec{ID: "rest", Type: "openapi", URL: adapt.Address}, Client: adapt.Client(src), MaxResult: 1 << 20}
}

func TestRESTServiceWorksLikeAnMCPServer(t *testing.T) {
	came, left := make(chan struct{}, 1), make(chan struct{}, 1)
	stop := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/odd":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{ "n":9007199254740993,"z":1.0 }`)
		case "/refuses":
			w.WriteHeader(http.StatusTeapot)
		case "/breaks":
			if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
				c.Close()
			}
		case "/hangs":
			came <- struct{}{}
			_, _ = io.Copy(io.Discard, r.Body) // net/http detects the end of the connection only after this
			select {
			case <-r.Context().Done():
				left <- struct{}{}
			case <-stop:
			}
		case "/floods":
			fmt.Fprint(w, strings.Repeat("x", 2<<20))
		}
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(stop) })
	p := open(t, adapted(t, srv.URL))
	if s := p.ready(); s.State != schema.StateInitialized || s.Transport != "openapi" || s.Title != "Calm" || s.Version != "7" || s.Protocol != "2026-07-28" {
		t.Errorf("the server is %+v", s)
	}
	if defs, sum := p.Definitions(); len(defs.Tools) != 1 || sum == "" {
		t.Errorf("it offers %+v", defs)
	}
	o := must(t, p.call("go", `{"way":"odd","body":{}}`))
	if !strings.Contains(string(o.Body), `"structuredContent":{ "n":9007199254740993,"z":1.0 }`) || o.ToolError {
		t.Errorf("the result is %s", o.Body)
	}
	if o := must(t, p.call("go", `{"way":"refuses"}`)); !o.ToolError || !strings.Contains(string(o.Body), "HTTP 418") {
		t.Errorf("the result is %s", o.Body)
	}
	if o := must(t, p.call("go", `{"way":".."}`)); !o.ToolError || !strings.Contains(string(o.Body), "Nothing was sent") {
		t.Errorf("the result is %s", o.Body)
	}
	wantKind(t, p.call("go", `{"way":"breaks"}`), schema.KindOutcomeUnknown, true)
	wantKind(t, p.call("go", `{"way":"floods"}`), schema.KindResultTooLarge, true)
	wantKind(t, p.call("none", `{}`), schema.KindProtocol, true)
	r, wait := p.begin(&Request{Name: "go", Params: []byte(`{"way":"hangs"}`)})
	o = must(t, p.call("go", `{"way":"odd"}`)) // while the other call hangs
	<-came
	r.Cancel()
	wantKind(t, wait(), schema.KindCanceled, true)
	<-left
}

func TestCallToUnreachableRESTServiceIsNotStarted(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	address := srv.URL
	srv.Close()
	p := open(t, adapted(t, address))
	p.ready()
	if e := wantKind(t, p.call("go", `{"way":"x"}`), schema.KindServerFailed, false); !e.Retryable || strings.Contains(e.Detail, address) {
		t.Errorf("%+v", e)
	}
}

func TestMissingOpenAPIDocumentIsReported(t *testing.T) {
	src := openapi.New(openapi.Config{ID: "rest", OpenAPI: config.OpenAPI{Document: t.TempDir() + "/none.json", BaseURL: "http://127.0.0.1:1"}})
	p := open(t, Config{Spec: launch.Spec{ID: "rest", Type: "openapi", URL: adapt.Address}, Client: adapt.Client(src)})
	s := p.until("failed", func(s schema.Server) bool { return s.State == schema.StateError })
	if !strings.Contains(s.Error, "There is no OpenAPI document") {
		t.Errorf("it says %s", s.Error)
	}
}
