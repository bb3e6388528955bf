package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// programs says where everything is that the tests start. It is set once, before
// the first test.
var programs struct {
	root string // of the repository
	test string // nats-server, everything-server, scripted-server
	node string // node_modules with the MCP servers of npm
	self string // this test binary, for servers of our own

	plain func() (string, error) // builds callyard, frontdoor, approver and worker
	race  func() (string, error) // builds frontdoor and worker with the race detector
}

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
		return dir, build(dir, nil, "callyard", "frontdoor", "approver", "worker")
	})
	programs.race = sync.OnceValues(func() (string, error) {
		dir := filepath.Join(temp, "race")
		return dir, build(dir, []string{"-race"}, "frontdoor", "worker")
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

// find looks for what scripts/test.sh brings.
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

// bin returns the folder of the programs, which are built at the first use.
func bin(t testing.TB) string {
	t.Helper()
	dir, err := programs.plain()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// watchSources looks at every Go file that the programs are made of. The go
// command keeps results of tests, and takes one again while the files that the
// tests looked at are as they were; of what a test built it knows nothing. It
// minds the time of the tests only, so this is not done before them.
func watchSources() error {
	for _, dir := range []string{"cmd", "internal", "pkg"} {
		err := filepath.WalkDir(filepath.Join(programs.root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			// A file may vanish in between: somebody is at work on the tree.
			if _, err := os.Stat(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("looking at the sources: %w", err)
		}
	}
	return nil
}

// build builds commands into dir.
func build(dir string, flags []string, commands ...string) error {
	if err := watchSources(); err != nil {
		return err
	}
	args := append([]string{"build", "-buildvcs=false", "-o", dir + string(filepath.Separator)}, flags...)
	for _, c := range commands {
		args = append(args, "./cmd/"+c)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = programs.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
