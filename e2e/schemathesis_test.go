package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// schemathesis runs it against the document at url. It returns the output, and
// whether the API conforms to the document. `make schemathesis` sets CALLYARD_SCHEMATHESIS to the
// number of examples for each operation.
func schemathesis(t *testing.T, url, known string) (said string, passed bool) {
	t.Helper()
	examples := os.Getenv("CALLYARD_SCHEMATHESIS")
	if examples == "" {
		examples = "8"
	}
	ours := filepath.Join(programs.root, "e2e/hostile/schemathesis")
	cmd := exec.CommandContext(t.Context(), filepath.Join(programs.root, ".cache/schemathesis/bin/schemathesis"),
		"--config-file", filepath.Join(ours, "schemathesis.toml"), "run", url, "--max-examples", examples, "--no-color")
	cmd.Dir = t.TempDir() // it writes files for its next run
	cmd.Env = append(cleanEnviron(), "CALLYARD_KNOWN="+known, "SCHEMATHESIS_HOOKS="+filepath.Join(ours, "hooks.py"), "PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=127.0.0.1")
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatalf("%v; run scripts/test.sh --setup, which brings it", err)
	}
	return string(out), err == nil
}

func TestEveryResponseConformsToTheOpenAPIDocument(t *testing.T) {
	t.Parallel()
	b := openHostileTarget(t)
	for _, one := range []struct {
		name, url, known string
	}{
		{"front door", b.door.url, knownJSON(t, b.doorKnows)}, {"approver", b.approver.url, knownJSON(t, b.approverKnows)},
	} {
		t.Run(one.name, func(t *testing.T) {
			said, passed := schemathesis(t, one.url+"/openapi.json", one.known)
			if !passed || !strings.Contains(said, "No issues found") {
				t.Errorf("schemathesis:\n%s", said)
			}
		})
	}
	b.holds(t)
}

// An API that does not conform to its document must be detected. Otherwise the test above
// would prove nothing.
func TestNonconformingResponseIsDetected(t *testing.T) {
	answer := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	const problem = "application/problem+json"
	lies := map[string]http.HandlerFunc{
		"/another-shape":     answer(200, "application/json", `{"id":7}`),
		"/a-fault-of-ours":   answer(500, problem, `{"status":500,"title":"x","detail":"y","error":"y"}`),
		"/no-document":       answer(400, "text/plain", "no"),
		"/no-retry-after":    answer(503, problem, `{"status":503,"title":"x","detail":"y","error":"y"}`),
		"/another-status":    answer(404, problem, `{"status":403,"title":"x","detail":"y","error":"y"}`),
		"/an-unknown-status": answer(299, "application/json", `{"id":"x"}`),
	}
	const operation = `{"get":{"responses":{
		"200":{"description":"x","content":{"application/json":{"schema":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}}}},
		"400":{"description":"x"},"404":{"description":"x"},"500":{"description":"x"},"503":{"description":"x"}}}}`
	mux := http.NewServeMux()
	paths := []string{`"/true":` + operation}
	mux.HandleFunc("/true", answer(200, "application/json", `{"id":"x"}`))
	for path, h := range lies {
		mux.HandleFunc(path, h)
		paths = append(paths, fmt.Sprintf("%q:%s", path, operation))
	}
	mux.HandleFunc("/openapi.json", answer(200, "application/json", `{"openapi":"3.1.0","info":{"title":"x","version":"1"},"paths":{`+strings.Join(paths, ",")+`}}`))
	server := httptest.NewServer(mux)
	defer server.Close()
	said, passed := schemathesis(t, server.URL+"/openapi.json", "{}")
	if passed || strings.Contains(said, " /true _") {
		t.Errorf("it passes: %t\n%s", passed, said)
	}
	for path := range lies {
		if !strings.Contains(said, " "+path+" _") {
			t.Errorf("nothing is found at %s:\n%s", path, said)
		}
	}
}
