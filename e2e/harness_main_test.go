package e2e

import (
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
	test string // nats-server, everything-server, scripted-server
	node string // node_modules with the MCP servers of npm
	self string // this test binary, for servers of our own

	plain func() (string, error) // builds callyard, frontdoor, approver and worker
	bench func() (string, error) // builds callyard-bench next to them
	race  func() (string, error) // builds frontdoor and worker with the race detector
}

// TestMain runs the tests. Tests that mostly wait, or run third-party programs, are parallel.
// Tests that check times, memory or leftovers of processes are not.
func TestMain(m *testing.M) {
	if os.Getenv(mirrorVariable) != "" {
		os.Exit(mirror(os.Stdin, os.Stdout))
	}
	if os.Getenv(tasksVariable) != "" {
		os.Exit(serveTasks())
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	temp, err := os.MkdirTemp("", "callyard-e2e-")
	if err != nil {
		return fault(err)
	}
	defer func() {
		if err := os.RemoveAll(temp); err != nil {
			fault(err)
		}
	}()
	if err := find(); err != nil {
		return fault(err)
	}
	programs.plain = sync.OnceValues(func() (string, error) {
		dir := filepath.Join(temp, "bin")
		return dir, proc.Build(programs.root, dir, nil, "callyard", "frontdoor", "approver", "worker")
	})
	programs.race = sync.OnceValues(func() (string, error) {
		dir := filepath.Join(temp, "race")
		return dir, proc.Build(programs.root, dir, []string{"-race", "-gcflags=all=-dwarf=false"}, "frontdoor", "worker")
	})
	programs.bench = sync.OnceValues(func() (string, error) {
		dir, err := programs.plain()
		if err == nil {
			err = proc.BuildBench(programs.root, dir)
		}
		return dir, err
	})
	code := m.Run()
	if err := forgetImages(); err != nil {
		code = max(code, fault(err))
	}
	if err := goleak.Find(); err != nil && code == 0 {
		return fault(err)
	}
	return code
}

func fault(err error) int {
	fmt.Fprintln(os.Stderr, "e2e:", err)
	return 1
}

// find finds the programs that scripts/test.sh installed.
func find() (err error) {
	if programs.root, err = filepath.Abs(".."); err != nil {
		return err
	}
	if programs.self, err = os.Executable(); err != nil {
		return err
	}
	from := func(variable, otherwise string) string {
		if dir := os.Getenv(variable); dir != "" {
			return dir
		}
		return filepath.Join(programs.root, otherwise)
	}
	programs.test = from("CALLYARD_TEST_BIN", ".cache/bin")
	programs.node = from("CALLYARD_TEST_SERVERS", "e2e/servers/node_modules")
	for _, path := range []string{
		filepath.Join(programs.test, "nats-server"), filepath.Join(programs.test, "everything-server"),
		filepath.Join(programs.test, "scripted-server"), filepath.Join(programs.node, "@modelcontextprotocol"),
	} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%w; run scripts/test.sh --setup, which brings it", err)
		}
	}
	return nil
}

// withBench builds the program of `callyard bench`, next to callyard.
func withBench(t testing.TB) {
	t.Helper()
	if _, err := programs.bench(); err != nil {
		t.Fatal(err)
	}
}

// bin returns the folder of the programs, which are built on first use.
func bin(t testing.TB) string {
	t.Helper()
	dir, err := programs.plain()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
