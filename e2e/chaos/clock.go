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

// A static program reads the time from a page of memory that the kernel maps, not
// through a library or a system call that could be replaced. The kernel's time
// namespaces support only the clocks that count since boot. So the
// fleets whose clocks jump are built with a modified package time of this Go: Now adds
// the content of a file that the harness holds. Callyard, nats-server and the libraries
// do not notice, and the monotonic clock remains unchanged, as it does when the clock of a
// machine is set.

// clockVariable names the file with the clock offset of a process.
const clockVariable = "CHAOS_CLOCK"

// clock is the clock offset of one process, in seconds.
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

// set changes the offset. The process applies it the next time it reads the clock.
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
	// aheadSource is a file that is added to package time.
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

// clockOverlay writes the modified files of package time below dir, and returns
// the overlay file for go build.
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

// wrongClock modifies the source of package time.
func wrongClock(source string) (string, error) {
	if strings.Count(source, nowRead) != 1 {
		return "", fmt.Errorf("package time of this Go reads the clock in another way than we know; see clock.go")
	}
	return strings.Replace(source, nowRead, nowMore, 1), nil
}

// BuildClocked builds the programs of a fleet with adjustable clocks, into p.
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
