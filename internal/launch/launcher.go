package launch

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// closeGrace is the grace that [Launcher.Close] gives to children that are still running.
const closeGrace = time.Second

// Launcher starts children and ensures that they and their descendants end. Three mechanisms find
// them:
//
//   - Each child leads a process group, which is killed as a whole.
//   - Each child's environment has a cookie, which its descendants inherit. Processes with the
//     cookie of an ended child are killed (Linux).
//   - A reaper, a small process that knows the groups and the cookie, kills all of them when the
//     worker has ended in any way.
//
// A Launcher is safe for concurrent use.
type Launcher struct {
	log     *slog.Logger
	cookie  string
	reaper  *reaper // nil only in tests that show why it is needed
	sweeper sweeper
	budget  pipeBudget
	owners  sync.WaitGroup // one goroutine for each child

	mu       sync.Mutex
	closed   bool
	count    int
	starting sync.WaitGroup // Starts in progress; added to under mu while not closed
	children map[*Child]struct{}
}

// options are for tests.
type options struct {
	noReaper      bool
	reaperStarted func(pid int) // called for each reaper, on any goroutine
}

// New returns a Launcher and starts its reaper. It fails if the reaper does not start, usually because
// main does not start as the package comment requires. Descriptors that the worker inherited are
// marked close-on-exec, so that no child inherits them.
func New(log *slog.Logger) (*Launcher, error) { return newLauncher(log, options{}) }

func newLauncher(log *slog.Logger, opt options) (*Launcher, error) {
	if IsReaper() {
		// Without this check, a main that forgot the reaper would start itself forever.
		return nil, errors.New("this process was started as a reaper but main does not call launch.RunReaper first; add the call")
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	closeDescriptorsOnExec()
	l := &Launcher{log: log, cookie: hex.EncodeToString(random[:]), children: make(map[*Child]struct{})}
	if !opt.noReaper {
		g, err := startReaper(log, l.cookie, opt.reaperStarted)
		if err != nil {
			return nil, fmt.Errorf("starting the reaper of child processes: %w", err)
		}
		l.reaper = g
	}
	return l, nil
}

// closeDescriptorsOnExec marks every descriptor above 2 close-on-exec. Go opens its own descriptors that way;
// this handles those inherited from the parent process.
func closeDescriptorsOnExec() {
	names, err := readNames("/dev/fd")
	if err != nil {
		return
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// Start starts the process of a stdio server. The caller must call [Child.Stop] in the end, even if
// the child ended by itself. The error is a *schema.Error of kind server-failed.
func (l *Launcher) Start(spec Spec) (*Child, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	path, fault := spec.find()
	if fault != nil {
		return nil, fault
	}

	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, Failed("The server %q was not started: the worker is shutting down.", spec.ID)
	}
	l.count++
	cookie := l.cookie + "." + strconv.Itoa(l.count)
	l.starting.Add(1)
	l.mu.Unlock()
	defer l.starting.Done()
	return l.start(spec, path, cookie)
}

func (l *Launcher) start(spec Spec, path, cookie string) (*Child, error) {
	ends, err := openPipes()
	if err != nil {
		return nil, spec.startFault(path, err)
	}
	attr := &os.ProcAttr{
		Dir:   spec.Dir,
		Env:   environment(spec, cookie),
		Files: append(ends.child[:], spec.Files...),
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	}
	if spec.User != 0 {
		attr.Sys.Credential = &syscall.Credential{Uid: spec.User, Gid: spec.User}
	}
	argv := append([]string{spec.Command}, spec.Args...)
	proc, err := startProcess(path, argv, attr)
	ends.closeChild()
	if err != nil {
		ends.closeOurs()
		return nil, spec.startFault(path, err)
	}
	c := &Child{
		Stdin:    ends.stdin,
		Stdout:   ends.stdout,
		launcher: l,
		id:       string(spec.ID),
		cookie:   cookie,
		proc:     proc,
		stdin:    ends.stdin,
		tail:     newTail(l.log.With("server", spec.ID, "pid", proc.Pid), spec.Env),
		done:     make(chan struct{}),
	}
	c.borrowed = l.budget.enlarge(ends.stdin) + l.budget.enlarge(ends.stdout)
	if l.reaper != nil {
		l.reaper.add(proc.Pid)
	}
	l.mu.Lock()
	l.children[c] = struct{}{}
	l.mu.Unlock()
	l.log.Info("server process started", "server", spec.ID, "pid", proc.Pid)
	l.owners.Go(func() { c.own(ends.stderr) })
	return c, nil
}

// Remember passes a note to the reaper: one line of less than 4000 bytes, without secrets, which
// survives this process however it ends. See [RunReaper].
func (l *Launcher) Remember(note string) {
	if l.reaper != nil && len(note) < 4000 && !strings.ContainsRune(note, '\n') {
		l.reaper.note(note)
	}
}

// Forget removes a note of [Launcher.Remember].
func (l *Launcher) Forget(note string) {
	if l.reaper != nil {
		l.reaper.forget(note)
	}
}

// forget is the last step of a child's owner.
func (l *Launcher) forget(c *Child) {
	l.budget.release(c.borrowed)
	l.mu.Lock()
	delete(l.children, c)
	l.mu.Unlock()
}

// Close refuses further starts, stops the remaining children in parallel with a short grace, and then
// ends the reaper. It may be called more than once, but not concurrently.
func (l *Launcher) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.starting.Wait()

	var stops sync.WaitGroup
	l.mu.Lock()
	for c := range l.children {
		stops.Go(func() { c.Stop(closeGrace) })
	}
	l.mu.Unlock()
	stops.Wait()
	l.owners.Wait()
	if l.reaper == nil {
		return nil
	}
	if err := l.reaper.close(); err != nil {
		return fmt.Errorf("stopping the reaper of child processes: %w", err)
	}
	return nil
}
