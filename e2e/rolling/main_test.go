package rolling

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/e2e/proc"
)

// programs holds the paths of all programs that the tests start. It is set once, before
// the first test.
var programs struct {
	root string // of the repository
	test string // nats-server, scripted-server

	now  func() (string, error) // builds frontdoor, approver, worker, callyard
	next func() (string, error) // builds frontdoor and worker of a release with another wire version
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	temp, err := os.MkdirTemp("", "callyard-rolling-")
	if err != nil {
		return fault(err)
	}
	defer func() { _ = os.RemoveAll(temp) }() // leftovers are removed with the machine's
	if programs.root, err = filepath.Abs("../.."); err != nil {
		return fault(err)
	}
	if programs.test = os.Getenv("CALLYARD_TEST_BIN"); programs.test == "" {
		programs.test = filepath.Join(programs.root, ".cache", "bin")
	}
	for _, name := range []string{"nats-server", "scripted-server"} {
		if _, err := os.Stat(filepath.Join(programs.test, name)); err != nil {
			return fault(fmt.Errorf("%w; run scripts/test.sh --setup, which brings it", err))
		}
	}
	programs.now = sync.OnceValues(func() (string, error) {
		dir := filepath.Join(temp, "now")
		return dir, proc.Build(programs.root, dir, nil, "frontdoor", "approver", "worker", "callyard")
	})
	programs.next = sync.OnceValues(func() (string, error) {
		dir := filepath.Join(temp, "next")
		overlay, err := nextWire(temp)
		if err != nil {
			return "", err
		}
		return dir, proc.Build(programs.root, dir, []string{"-overlay", overlay}, "frontdoor", "worker")
	})
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		return fault(err)
	}
	return code
}

// nextWire makes go build use another message version instead of that of pkg/bus:
// that of a future release. It returns the file for the flag -overlay.
func nextWire(temp string) (string, error) {
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(programs.root, "pkg", "bus", "wire.go"): filepath.Join(programs.root, "e2e", "rolling", "testdata", "wire.go"),
	}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(temp, "next.json")
	return path, os.WriteFile(path, list, 0o600)
}

func fault(err error) int {
	fmt.Fprintln(os.Stderr, "rolling:", err)
	return 1
}

// bin returns the folder of programs, which are built on first use.
func bin(t testing.TB, programs func() (string, error)) string {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
