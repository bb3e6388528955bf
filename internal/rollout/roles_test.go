package rollout

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/episode"
	"github.com/callyard/callyard/internal/kit/httpguard"
)

// The requirements are those of a front door: an auditor calls nothing, and a caller reads no metrics.
func TestKeysDoWhatTheirRoleAllows(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"env.yaml": "environments:\n  notes:\n    tools: [todo/*]\n    tasks_file: t\n", "t": `{"id":"a","question":"x"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := episode.Load(filepath.Join(dir, "env.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	secrets, list := map[string]string{"nobody": ""}, []authn.Key(nil)
	for _, role := range []scope.Role{"", "caller", "auditor"} {
		key, hash := authn.Generate()
		secrets[string(role)] = key
		list = append(list, authn.Key{Name: "key of " + string(role), Role: role, Hash: hash})
	}
	keys, err := authn.NewKeys(list)
	if err != nil {
		t.Fatal(err)
	}
	origin, err := httpguard.New(nil, keys.Configured)
	if err != nil {
		t.Fatal(err)
	}
	m := episode.New(episode.Options{File: f, Calls: slowCalls{}, Catalog: twoTools{}, Log: slog.New(slog.DiscardHandler)})
	defer m.Close()
	s := New(Options{Episodes: m, Keys: keys, Origin: origin, Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })})
	defer s.Close()
	for _, c := range []struct {
		method, path string
		want         map[string]int // by role; "" is a key without one
	}{
		{"POST", "/reset", map[string]int{"": 200, "caller": 200, "auditor": 403, "nobody": 401}},
		{"GET", "/metrics", map[string]int{"": 200, "caller": 403, "auditor": 200, "nobody": 401}},
		{"GET", "/health", map[string]int{"": 200, "caller": 200, "auditor": 200, "nobody": 200}},
	} {
		for role, want := range c.want {
			r := httptest.NewRequestWithContext(t.Context(), c.method, "http://127.0.0.1"+c.path, strings.NewReader("{}"))
			if secrets[role] != "" {
				r.Header.Set("Authorization", "Bearer "+secrets[role])
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("%s %s as %q: %d %s, want %d", c.method, c.path, role, w.Code, w.Body, want)
			}
		}
	}
}
