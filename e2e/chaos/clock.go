package chaos

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A static program asks the kernel for the time through a page of memory, not
// through a library or a system call that could be replaced, and the kernel has
// namespaces for the clocks that count since the start of the machine only. So the
// fleets whose clocks jump are built with package time of this Go changed in two
// places: Now adds what stands in a file that the harness holds. Nothing of
// Callyard, of nats-server or of any library knows of it, and the monotonic clock
// stays as it is, as it does when the clock of a machine is set.

// clockVariable names the file of the clock of a process.
const clockVariable = "CHAOS_CLOCK"

// clock is by how many seconds the clock of one process is wrong.
type clock struct {
	path string
	file *os.File
}

func newClock(path string) (*clock, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("making a clock: %w", err)
	}
	c := &clock{path, f}
	return c, c.set(0)
}

// set moves the clock, which is noticed with the next look at it.
func (c *clock) set(ahead time.Duration) error {
	var text [8]byte
	binary.NativeEndian.PutUint64(text[:], uint64(int64(ahead/time.Second)))
	if _, err := c.file.WriteAt(text[:], 0); err != nil {
		return fmt.Errorf("setting a clock: %w", err)
	}
	return nil
}

func (c *clock) close() error { return c.file.Close() }

const (
	nowRead = "	sec, nsec, mono := runtimeNow()\n	if mono == 0 {"
	nowMore = "	sec, nsec, mono := runtimeNow()\n	sec += chaosAhead()\n	if mono == 0 {"
	// aheadSource is a file that package time gets.
	aheadSource = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var chaosClock = func() *int64 {
	path, ok := syscall.Getenv("` + clockVariable + `")
	if !ok {
		return nil
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic("time: there is no clock at " + path)
	}
	page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("time: the clock at " + path + " cannot be read")
	}
	return (*int64)(unsafe.Pointer(&page[0]))
}()

func chaosAhead() int64 {
	if chaosClock == nil {
		return 0
	}
	return atomic.LoadInt64(chaosClock)
}
`
)

// clockOverlay writes below dir what go build takes for package time instead of
// its own, and returns the file that says so.
func clockOverlay(ctx context.Context, root, dir string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOROOT")
	cmd.Dir = root
	goroot, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("asking for the sources of Go: %w", err)
	}
	folder := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time")
	text, err := os.ReadFile(filepath.Join(folder, "time.go"))
	if err != nil {
		return "", fmt.Errorf("reading the sources of Go: %w", err)
	}
	changed, err := wrongClock(string(text))
	if err != nil {
		return "", err
	}
	files := map[string]string{"time.go": changed, "chaos_clock.go": aheadSource}
	replace := map[string]string{}
	for name, text := range files {
		replace[filepath.Join(folder, name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("writing the changed package time: %w", err)
		}
	}
	return writeOverlay(filepath.Join(dir, "overlay.json"), replace)
}

// wrongClock changes the source of package time.
func wrongClock(source string) (string, error) {
	if strings.Count(source, nowRead) != 1 {
		return "", fmt.Errorf("package time of this Go reads the clock in another way than we know; see clock.go")
	}
	return strings.Replace(source, nowRead, nowMore, 1), nil
}

// BuildClocked builds the programs of a fleet whose clocks can be set, into p.
func BuildClocked(ctx context.Context, root string, p *Programs) error {
	dir := filepath.Join(filepath.Dir(p.Dir), "time")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of the changed package time: %w", err)
	}
	overlay, err := clockOverlay(ctx, root, dir)
	if err != nil {
		return err
	}
	pure := append(os.Environ(), "CGO_ENABLED=0")
	return build(ctx, root, pure, "-overlay", overlay, "-o", p.Clocked+string(filepath.Separator), "./cmd/frontdoor", "./cmd/worker", "github.com/nats-io/nats-server/v2")
}
