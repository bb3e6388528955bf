package e2e

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// holdAdd is a policy that holds one tool of the demo server.
const holdAdd = `rules:
  - name: sums-need-a-yes
    match: {server: demo, tool: add}
    level: 2
    approval: {by: caller}
`

// clientSuites are the test suites of the generated clients, as their developers run them.
var clientSuites = []struct {
	name    string
	dir     string
	command []string
}{
	{"go", "clients/go", []string{"env", "CGO_ENABLED=1", "go", "test", "-race", "-gcflags=all=-dwarf=false", "-count=1", "-tags", "live", "./..."}},
	{"typescript", "clients/typescript", []string{"npm", "test", "--silent"}},
	{"python", "clients/python", []string{"../../.cache/python/bin/python", "-W", "error::ResourceWarning", "-m", "unittest", "discover", "-s", "tests"}},
	{"python types", "clients/python", []string{"../../.cache/python/bin/python", "-m", "mypy", "--cache-dir=/dev/null"}},
}

// clientExamples are the programs of docs/how-to/clients.md.
var clientExamples = []struct {
	name, dir, file string
	command         []string
}{
	{"go", "clients/go", "example/main.go", []string{"go", "run", "./example"}},
	{"typescript", "clients/typescript", "example/first.ts", []string{"node", "dist/example/first.js"}},
	{"python", "clients/python", "example/first.py", []string{"../../.cache/python/bin/python", "example/first.py"}},
	{"python asyncio", "clients/python", "example/with_asyncio.py", []string{"../../.cache/python/bin/python", "example/with_asyncio.py"}},
}

// startDemo starts Callyard as a new user does, with a policy that holds one tool.
func startDemo(t *testing.T) *door {
	t.Helper()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, holdAdd)
	up := startUp(t, setup{flags: []string{"--policy", policy}, env: []string{quickStop}})
	up.waitServers(t, 1, "demo")
	return up
}

// startLimited starts a fabric whose demo server allows one call per second.
func startLimited(t *testing.T) *door {
	t.Helper()
	up := startUp(t, setup{config: "limits: {servers: [{servers: [demo], rate: 1, burst: 1}]}\n", env: []string{quickStop}})
	up.waitServers(t, 1, "demo")
	return up
}

func runClient(t *testing.T, url, dir string, command []string, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = filepath.Join(programs.root, dir)
	if strings.HasPrefix(command[0], "..") {
		cmd.Path = filepath.Join(cmd.Dir, command[0])
	}
	cmd.Env = append(cleanEnviron(), "CALLYARD_URL="+url, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1", "PYTHONPATH="+cmd.Dir, "PYTHONDONTWRITEBYTECODE=1")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s in %s: %v\n%s", strings.Join(command, " "), dir, err, out)
	}
	return string(out)
}

func TestTheClientsWorkAgainstALiveFrontDoor(t *testing.T) {
	t.Parallel()
	up, limited := startDemo(t), startLimited(t)
	watchClients(t)
	for _, s := range clientSuites {
		t.Run(s.name, func(t *testing.T) { runClient(t, up.url, s.dir, s.command, "CALLYARD_LIMITED_URL="+limited.url) })
	}
	document, err := os.ReadFile(filepath.Join(programs.root, "docs", "how-to", "clients.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range clientExamples {
		t.Run(e.name+" example", func(t *testing.T) {
			said := runClient(t, up.url, e.dir, e.command)
			for _, want := range []string{"hello\n", "0 succeeded\n", "1 succeeded\n"} {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q: %s", want, said)
				}
			}
			source, err := os.ReadFile(filepath.Join(programs.root, e.dir, e.file))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(document, append([]byte("\n"), source...)) {
				t.Errorf("docs/how-to/clients.md does not show %s/%s as it is", e.dir, e.file)
			}
		})
	}
}

func TestTheServedDocumentIsTheOneTheClientsAreMadeOf(t *testing.T) {
	up := startDemo(t)
	var served, kept map[string]any
	up.read(t, "/openapi.json", &served)
	raw, err := os.ReadFile(filepath.Join(programs.root, "clients", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &kept); err != nil {
		t.Fatal(err)
	}
	for _, document := range []map[string]any{served, kept} {
		delete(document["info"].(map[string]any), "version") // the version of the build
	}
	if diff := cmp.Diff(kept, served); diff != "" {
		t.Errorf("make generate writes the document and the clients (-clients/openapi.json +served)\n%s", diff)
	}
}

// watchClients opens the source files of the suites, as proc.Build does for the
// programs, so that the go command does not reuse a cached result for other files.
func watchClients(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(programs.root, "clients"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "node_modules" || d.Name() == "dist" || d.Name() == "__pycache__") {
			return fs.SkipDir
		}
		if err == nil && !d.IsDir() {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// generated lists the generated files of the clients.
var generated = []string{"go/client.gen.go", "typescript/src/schema.ts", "python/callyard/rest"}

func TestTheClientsAreWhatTheGeneratorsMakeOfTheDocument(t *testing.T) {
	t.Parallel()
	fresh := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "scripts/generate.sh", "--into", fresh)
	cmd.Dir = programs.root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, path := range generated {
		want, got := sources(t, filepath.Join(fresh, path)), sources(t, filepath.Join(programs.root, "clients", path))
		if len(want) == 0 {
			t.Errorf("the generator made nothing at %s", path)
		}
		for _, name := range slices.Sorted(keysOf(want, got)) {
			if want[name] != got[name] {
				t.Errorf("clients/%s is not what its generator makes: run make generate", filepath.Join(path, name))
			}
		}
	}
}

// sources returns the files at a path, by their relative names.
func sources(t *testing.T, root string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "__pycache__") || strings.Contains(path, ".ruff_cache") {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// keysOf yields every key of the maps.
func keysOf(all ...map[string]string) func(yield func(string) bool) {
	seen := make(map[string]bool)
	return func(yield func(string) bool) {
		for _, files := range all {
			for name := range files {
				if !seen[name] && !yield(name) {
					return
				}
				seen[name] = true
			}
		}
	}
}
