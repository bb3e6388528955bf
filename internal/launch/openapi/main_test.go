package openapi

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch/adapt"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v; make it with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// seen is a request as a service got it.
type seen struct {
	Method, Target string // Target as it stood in the request line
	Header         http.Header
	Body           string
}

// service is an HTTP service that keeps what it is asked.
type service struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []seen
	answer http.HandlerFunc // guarded by mu; nil answers {}
}

func newService(t *testing.T) *service {
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.asked = append(s.asked, seen{r.Method, r.RequestURI, r.Header.Clone(), string(body)})
		answer := s.answer
		s.mu.Unlock()
		if answer == nil {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{}")
			return
		}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) answers(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = h
}

// last returns the last request, and forgets all.
func (s *service) last(t *testing.T) seen {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) == 0 {
		t.Fatal("nothing was sent")
	}
	last := s.asked[len(s.asked)-1]
	s.asked = nil
	return last
}

func (s *service) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// secrets are credentials for the petstore.
func secrets() map[string]config.Credential {
	return map[string]config.Credential{
		"key": {Value: "k-secret"}, "basic": {Username: "ada", Password: "pass:word"}, "certificate": {Value: "c&secret"}, "crumb": {Value: "crumb"},
	}
}

// open returns a server over a document; it has been read.
func open(t *testing.T, cfg Config) *Server {
	t.Helper()
	s := New(cfg)
	s.offers.Fresh = 0
	t.Cleanup(s.CloseIdle)
	if _, err := s.Offer(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func petstore(t *testing.T, s *service) *Server {
	return open(t, Config{ID: "pets", OpenAPI: config.OpenAPI{Document: "testdata/petstore.yaml", BaseURL: s.URL + "/v1", Credentials: secrets()}})
}

// result is a CallToolResult.
type result struct {
	Content []struct {
		Type, Text, Data, MimeType string
		Resource                   struct{ MimeType, Blob string }
	}
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool
	Meta       struct {
		HTTP struct {
			Status   int
			Location string
		} `json:"callyard/http"`
	} `json:"_meta"`
}

func call(t *testing.T, s *Server, tool, arguments string) result {
	t.Helper()
	raw, err := s.Call(t.Context(), tool, json.RawMessage(arguments))
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	var r result
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatalf("%s: %v in %s", tool, err, raw)
	}
	return r
}

// callOK is call for what must not be refused.
func callOK(t *testing.T, s *Server, tool, arguments string) result {
	t.Helper()
	r := call(t, s, tool, arguments)
	if r.IsError {
		t.Fatalf("%s: %+v", tool, r)
	}
	return r
}

// refused is call for what must not be sent.
func refused(t *testing.T, s *Server, srv *service, tool, arguments string) string {
	t.Helper()
	r := call(t, s, tool, arguments)
	if !r.IsError || !strings.HasPrefix(r.Content[0].Text, "Nothing was sent") {
		t.Errorf("%s %s was not refused: %+v", tool, arguments, r)
	}
	if n := srv.count(); n > 0 {
		t.Errorf("%s %s was sent: %+v", tool, arguments, srv.last(t))
	}
	return r.Content[0].Text
}

// write puts a document into a file and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := t.TempDir() + "/openapi.json"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// fault returns why a document, or its entry, is refused.
func fault(t *testing.T, cfg Config) string {
	t.Helper()
	s := New(cfg)
	t.Cleanup(s.CloseIdle)
	_, err := s.Offer(context.Background())
	if err == nil {
		t.Fatal("it was not refused")
	}
	return err.Error()
}

func toolNames(o *adapt.Offer) []string {
	var out []string
	for _, tool := range o.Tools {
		out = append(out, tool.Name)
	}
	return out
}

// current returns what the server read last.
func current(t *testing.T, s *Server) documentTools {
	t.Helper()
	r, err := s.offers.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r.Own
}
