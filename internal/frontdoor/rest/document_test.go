package rest

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/frontdoor/frontdoortest"
	"github.com/callyard/callyard/internal/openapitest"
)

// documentOf returns the served OpenAPI document, indented.
func documentOf(t *testing.T, f *fabric) []byte {
	t.Helper()
	a := f.do("GET", "/openapi.json", "")
	if a.status != http.StatusOK || a.header.Get("Content-Type") != "application/openapi+json" {
		t.Fatalf("%d %v", a.status, a.header)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, a.body, "", "  "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	return pretty.Bytes()
}

// clients is the folder of the document from which clients are generated.
var clients = filepath.Join("..", "..", "..", "clients")

func TestServedOpenAPIDocumentMatchesTheClients(t *testing.T) {
	t.Parallel()
	shipped := admission.Limits{ArgumentBytes: 1 << 20, ArgumentDepth: 64, MaxTimeout: time.Hour}
	f := openFabricWith(t, frontdoortest.Options{Limits: shipped}, func(o *Options) { o.Version = "dev" })
	compareAt(t, filepath.Join(clients, "openapi.json"), documentOf(t, f))
	compareAt(t, filepath.Join(clients, "openapi.yaml"), f.do("GET", "/openapi.yaml", "").body)
}

func TestNoListInAnAnswerIsNull(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	if document := documentOf(t, f); bytes.Contains(document, []byte(`"null"`)) {
		t.Error("the document has a type that may be null; clients would have to look for it")
	}
	for _, path := range []string{"/servers", "/workers", "/tools", "/calls", "/batches", "/health"} {
		if a := f.do("GET", path, ""); a.status != http.StatusOK || bytes.Contains(a.body, []byte("null")) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

func TestDataOfEventsAndResultLinesHasASchema(t *testing.T) {
	t.Parallel()
	var document struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(documentOf(t, openFabric(t, nil)), &document); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Fleet", "FleetChange", "Batch", "BatchResult"} {
		if document.Components.Schemas[name] == nil {
			t.Errorf("the document has no schema %s", name)
		}
	}
}

func TestTheDocumentPassesTheLinter(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	redocly := filepath.Join(root, "tools", "npm", "node_modules", "@redocly", "cli", "bin", "cli.js")
	if _, err := os.Stat(redocly); err != nil {
		t.Fatal("the linter is not installed: run the tests with scripts/test.sh, or npm ci in tools/npm")
	}
	// The options prevent the linter from checking a registry for a newer release.
	cmd := exec.Command("node", redocly, "lint", "--extends=recommended", "--format=stylish", filepath.Join(clients, "openapi.json"))
	cmd.Env = append(os.Environ(), "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "REDOCLY_TELEMETRY=off", "CI=true")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "Your API description is valid") || strings.Contains(string(out), "You have") {
		t.Errorf("%s", out)
	}
}

// served returns every path of the document with its methods.
func served(t *testing.T, document []byte) map[string][]string {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		t.Fatal(err)
	}
	paths := make(map[string][]string)
	for path, methods := range doc.Paths {
		for method := range methods {
			paths[path] = append(paths[path], strings.ToUpper(method))
		}
	}
	return paths
}

func TestEveryDocumentedOperationIsServed(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	fill := strings.NewReplacer("{id}", "demo", "{tool}", "echo", "{uri}", "a%3Ab", "{name}", "greet")
	operations := 0
	for path, methods := range served(t, documentOf(t, f)) {
		for _, method := range methods {
			operations++
			req := f.request(method, fill.Replace(path), nil)
			if _, pattern := f.api.mux.Handler(req); pattern == "/" || pattern == "" {
				t.Errorf("%s %s is documented and not served", method, path)
			}
		}
	}
	if operations < 20 {
		t.Errorf("only %d operations", operations)
	}
}

func TestEveryExampleMatchesItsSchema(t *testing.T) {
	t.Parallel()
	bad, examples, err := openapitest.BadExamples(documentOf(t, openFabric(t, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range bad {
		t.Error(one)
	}
	if examples < 80 {
		t.Errorf("only %d examples", examples)
	}
}

// TestRefusalsOfEveryOperationAreDeclared sends each operation a request with an unknown parameter, and
// one with a body that is not JSON.
func TestRefusalsOfEveryOperationAreDeclared(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody *struct {
				Content map[string]json.RawMessage `json:"content"`
			} `json:"requestBody"`
			Responses map[string]json.RawMessage `json:"responses"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(documentOf(t, f), &doc); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("{id}", "demo", "{tool}", "echo", "{uri}", "a%3Ab", "{name}", "greet", "{tenant}", "default")
	for path, methods := range doc.Paths {
		for method, op := range methods {
			method = strings.ToUpper(method)
			if path == "/metrics" {
				continue // ignores unknown parameters
			}
			a := f.do(method, fill.Replace(path)+"?unknown=1", "")
			if a.status != http.StatusBadRequest || op.Responses["400"] == nil {
				t.Errorf("%s %s with an unknown parameter: %d, declared: %t", method, path, a.status, op.Responses["400"] != nil)
			}
			if op.RequestBody == nil {
				continue
			}
			a = f.do(method, fill.Replace(path), "text", "Content-Type", "text/plain")
			if status := strconv.Itoa(a.status); op.Responses[status] == nil || op.Responses["415"] == nil || op.Responses["413"] == nil || op.Responses["408"] == nil && op.RequestBody.Content["application/json"] != nil {
				t.Errorf("%s %s with a body of text: %s, declared: %v", method, path, status, slices.Sorted(maps.Keys(op.Responses)))
			}
		}
	}
}

func TestOpenAPIDocumentIsServedAsYAML(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	a := f.do("GET", "/openapi.yaml", "")
	if a.status != http.StatusOK || !strings.Contains(string(a.body), "openapi: 3.1.0") || !strings.Contains(string(a.body), "/servers/{id}/tools/{tool}:") {
		t.Errorf("%d %.200s", a.status, a.body)
	}
}

func TestDocsPageLoadsOnlyFromTheFrontDoor(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	a := f.do("GET", "/docs", "")
	policy := a.header.Get("Content-Security-Policy")
	if a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "http") || strings.Contains(policy, "unsafe-eval") {
		t.Errorf("%d %q", a.status, policy)
	}
	if regexp.MustCompile(`(src|href)="(https?:)?//`).Match(a.body) {
		t.Errorf("the page loads from elsewhere: %s", a.body)
	}
	for name, mediaType := range map[string]string{"elements.js": "text/javascript; charset=utf-8", "elements.css": "text/css; charset=utf-8"} {
		if !bytes.Contains(a.body, []byte(`"docs/`+name+`"`)) {
			t.Errorf("the page does not load %s", name)
		}
		packed := f.do("GET", "/docs/"+name, "", "Accept-Encoding", "gzip")
		plain := f.do("GET", "/docs/"+name, "", "Accept-Encoding", "identity")
		if packed.header.Get("Content-Encoding") != "gzip" || plain.header.Get("Content-Encoding") != "" || plain.header.Get("Content-Type") != mediaType {
			t.Errorf("%s: %v, %v", name, packed.header, plain.header)
		}
		unpacked, err := unpack(packed.body)
		if err != nil || !bytes.Equal(unpacked, plain.body) || len(plain.body) < 100_000 {
			t.Errorf("%s: %v, %d and %d bytes", name, err, len(unpacked), len(plain.body))
		}
	}
	for name, mediaType := range map[string]string{"page.js": "text/javascript; charset=utf-8", "page.css": "text/css; charset=utf-8"} {
		got := f.do("GET", "/docs/"+name, "")
		if !bytes.Contains(a.body, []byte(`"docs/`+name+`"`)) || got.status != 200 || got.header.Get("Content-Type") != mediaType || len(got.body) == 0 {
			t.Errorf("%s: %d %v", name, got.status, got.header)
		}
	}
	if a := f.do("GET", "/docs/LICENSE.elements.txt", ""); a.status != 200 || !bytes.Contains(a.body, []byte("Apache License")) {
		t.Errorf("licence: %d", a.status)
	}
}

func TestBrowsersGetHTMLAndProgramsGetJSON(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	for _, path := range []string{"/", "/problems/invalid-arguments"} {
		page := f.do("GET", path, "", "Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
		if !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") || !bytes.HasPrefix(page.body, []byte("<!doctype html>")) || !strings.Contains(page.header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %v %.80s", path, page.header, page.body)
		}
		if data := f.do("GET", path, ""); data.header.Get("Content-Type") != "application/json" || !json.Valid(data.body) {
			t.Errorf("%s: %v", path, data.header)
		}
	}
}

func TestHeadAnswersLikeGetWithoutABody(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	for _, path := range []string{"/health", "/servers/demo/tools", "/docs", "/openapi.json"} {
		res, err := f.client.Do(f.request("HEAD", path, nil))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != 200 || len(body) != 0 || err != nil {
			t.Errorf("%s: %d %v", path, res.StatusCode, err)
		}
	}
}
