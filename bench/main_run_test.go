package bench

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// short returns the options of a short run.
func short(t *testing.T) Options {
	t.Helper()
	return Options{
		Bin: programs(t, "callyard", "frontdoor", "worker", "nats-server"), Command: serverCommand(t), C: []int{1, 4}, Sizes: []int{200}, Rounds: 1,
		Warmup: 10 * time.Millisecond, Duration: 150 * time.Millisecond,
	}
}

func readReport(t *testing.T, dir string) Report {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, jsonFile))
	if err != nil {
		t.Fatal(err)
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRunStartsTargetsMeasuresWritesAndStops(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	peer := httptest.NewServer(http.HandlerFunc(echo))
	defer peer.Close()
	o := short(t)
	o.URLs = []string{"peer=" + peer.URL}
	o.Out = filepath.Join(t.TempDir(), "results")
	var stdout, stderr strings.Builder
	if err := Main(t.Context(), o, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	r := readReport(t, o.Out)
	if len(r.Cells) != 2*6 || len(r.Absent) != 0 {
		t.Fatalf("%d cells, absent %v", len(r.Cells), r.Absent)
	}
	for _, c := range r.Cells {
		m := c.Median
		if m.Calls == 0 || m.Errors != 0 || m.P50 <= 0 || m.P50 > m.P99 || m.P99 > m.Max || c.Ratio <= 0 {
			t.Errorf("%s at %d: %+v, ratio %g", c.Target, c.Concurrency, m, c.Ratio)
		}
	}
	for _, want := range append(r.Targets, "calls/s", "200 B", "bench.png") {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the output does not hold %q:\n%s", want, stdout.String())
		}
	}
	if n := strings.Count(stderr.String(), "[12/12]"); n != 1 {
		t.Errorf("progress was:\n%s", stderr.String())
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "callyard-bench-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestFailedTargetIsReportedAndOthersAreMeasured(t *testing.T) {
	o := short(t)
	o.Only = []string{DirectSDK, ThreeProcesses}
	o.Bin = programs(t, "frontdoor", "worker")
	o.Out = t.TempDir()
	var stdout, stderr strings.Builder
	err := Main(t.Context(), o, &stdout, &stderr)
	if err == nil || !strings.Contains(err.Error(), "could not be started") {
		t.Errorf("ended with %v", err)
	}
	r := readReport(t, o.Out)
	if r.Absent[ThreeProcesses] == "" || len(r.Cells) != 2 || r.Cells[0].Median.Calls == 0 {
		t.Errorf("absent %v, cells %+v", r.Absent, r.Cells)
	}
	if !strings.Contains(stdout.String(), "three-processes was left out: starting nats") {
		t.Errorf("the table says:\n%s", stdout.String())
	}
}

func TestToolOfARunningCallyardIsMeasured(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/servers/demo/tools/add" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(`{"content":[{"type":"text","text":"3"}]}`))
	}))
	defer server.Close()
	var stdout, stderr strings.Builder
	err := Main(t.Context(), Options{
		URL: server.URL, Server: "demo", Tool: "add", Arguments: []byte(`{"a":1,"b":2}`),
		C: []int{2}, Rounds: 1, Warmup: time.Millisecond, Duration: 50 * time.Millisecond,
	}, &stdout, &stderr)
	if err != nil || !strings.Contains(stdout.String(), "13 B") || strings.Contains(stdout.String(), "Errors") {
		t.Errorf("%v\n%s", err, stdout.String())
	}
}

func TestAnInterruptedRunStopsWhatItStarted(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	o := short(t)
	o.Only = []string{DirectSDK, ThreeProcesses}
	o.Rounds = 1000
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// The first line of progress is written when everything runs.
	stderr := writerFunc(func(p []byte) (int, error) {
		if strings.Contains(string(p), "[1/") {
			cancel()
		}
		return len(p), nil
	})
	if err := Main(ctx, o, &strings.Builder{}, stderr); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "callyard-bench-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestOutputOfAProgramThatExitsEarlyIsReported(t *testing.T) {
	dir := t.TempDir()
	// Without its servers file the program prints an error and ends.
	_, err := startAllInOne(t.Context(), binariesIn(programs(t, "callyard")), filepath.Join(dir, "missing.json"), dir)
	if err == nil || !strings.Contains(err.Error(), "there is no servers file") || !strings.Contains(err.Error(), "exit status 2") {
		t.Errorf("got %v", err)
	}
}

func TestChildrenDoNotInheritSettingsOfTheFabric(t *testing.T) {
	got := childEnvironment([]string{"PATH=/bin", "PORT=1", "CALLYARD_RISK=x", "MCP_CONFIG_PATH=y", "HOME=/h"})
	if strings.Join(got, " ") != "PATH=/bin HOME=/h" {
		t.Errorf("got %v", got)
	}
}

func TestRepositoryIsFoundFromSubdirectory(t *testing.T) {
	root, err := findRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "cmd", "callyard")); err != nil {
		t.Error(err)
	}
	if _, err := findRoot(t.TempDir()); !errors.Is(err, errNoRoot) {
		t.Errorf("found one elsewhere: %v", err)
	}
	if _, err := everythingCommand(t.TempDir()); err == nil || !strings.Contains(err.Error(), "npm ci") {
		t.Errorf("found a server elsewhere: %v", err)
	}
}
