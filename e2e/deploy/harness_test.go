package deploy_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/callyard/callyard/e2e/proc"
)

// within limits every wait. It is not an expectation, because the machine is shared with
// other programs.
const within = 90 * time.Second

var update = flag.Bool("update", false, "write the files that are made of pkg/bus")

// programs builds the commands once, when the first test needs them.
var programs func() (string, error)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "callyard-deploy-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chdir("../../deploy"); err != nil { // the folder under test
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	programs = sync.OnceValues(func() (string, error) {
		cmd := exec.Command("go", "build", "-buildvcs=false", "-o", dir+"/", "./cmd/callyard", "./cmd/frontdoor", "./cmd/approver", "./cmd/worker", "./deploy/images/demo")
		cmd.Dir = ".."
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building the commands: %w\n%s", err, out)
		}
		return dir, nil
	})
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func built(t testing.TB, name string) string {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// fromSetup returns a program that scripts/test.sh --setup installed.
func fromSetup(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("CALLYARD_TEST_BIN")
	if dir == "" {
		dir = filepath.Join("..", ".cache", "bin")
	}
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v; run scripts/test.sh --setup, which brings it", err)
	}
	return path
}

// process is a program that a test started; it ends with the test.
type process struct {
	cmd *exec.Cmd
	out output

	*proc.Captured
}

// output stores the output of a process.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// environment returns the environment of the test without variables that configure Callyard.
func environment(more ...string) []string {
	var env []string
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); name != "PORT" && name != "MCP_CONFIG_PATH" && !strings.HasPrefix(name, "CALLYARD_") && !strings.HasPrefix(name, "MCP_SERVER_") {
			env = append(env, e)
		}
	}
	return append(env, more...)
}

func start(t testing.TB, env []string, path string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(path, args...)}
	p.cmd.Env, p.cmd.Dir = environment(env...), t.TempDir()
	var err error
	if p.Captured, err = proc.Capture(p.cmd, &p.out); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.Done:
		case <-time.After(within):
			_ = p.cmd.Process.Kill()
			<-p.Done
			t.Errorf("%s did not end after SIGTERM", filepath.Base(path))
		}
		p.Close()
		if t.Failed() {
			text := p.out.String()
			t.Logf("--- %s:\n%s", filepath.Base(path), text[max(0, len(text)-8<<10):])
		}
	})
	return p
}

// says waits until the output of the process matches, and returns the submatches.
func (p *process) says(t testing.TB, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	var found []string
	eventually(t, "saying "+pattern, func() error {
		ended := p.Ended() // before its output is read
		if found = re.FindStringSubmatch(p.out.String()); found != nil {
			return nil
		}
		if ended {
			t.Fatalf("the process ended without saying %s:\n%s", pattern, p.out.String())
		}
		return errors.New("it has not")
	})
	return found
}

// eventually repeats check until it returns no error.
func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	proc.Eventually(t, within, what, check)
}

// ask sends a request; headers are "Name: value".
func ask(t testing.TB, method, url, body string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport, Timeout: within}).Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// generated compares a file of the folder deploy with its generated content.
func generated(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, read(t, path)); diff != "" {
		t.Errorf("%s is not what it is made of (-want +got); go -C e2e test ./deploy -update writes it:\n%s", path, diff)
	}
}

// stopped ends the process as an operator does and waits for it.
func (p *process) stopped() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.Done:
	case <-time.After(within):
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%s ended with code %d after SIGTERM", filepath.Base(p.cmd.Path), code)
	}
	return nil
}

// parseYAML reads a file. A key next to a merge overrides the merged one.
func parseYAML(t testing.TB, path string, v any) {
	t.Helper()
	if err := yaml.UnmarshalWithOptions([]byte(read(t, path)), v, yaml.AllowDuplicateMapKey()); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
