package launch

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// watched is a process held by a descriptor, so that its pid cannot come to mean
// another one.
type watched struct {
	pid, fd int
}

func watch(t *testing.T, pid int) watched {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("process %d: %v", pid, err)
	}
	t.Cleanup(func() {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		unix.Close(fd)
	})
	return watched{pid, fd}
}

// watchAll watches the processes whose pids are in the line.
func watchAll(t *testing.T, line string) []watched {
	t.Helper()
	var all []watched
	for field := range strings.FieldsSeq(line) {
		all = append(all, watch(t, atoi(t, field)))
	}
	return all
}

// lifetime limits the wait for the end of a process that should be gone. It is long, for a busy
// machine, and shorter than the part "sleep", so that no process ends by itself in that time.
const lifetime = 30 * time.Second

// gone says whether the process ends within the time.
func (w watched) gone(t *testing.T, within time.Duration) bool {
	t.Helper()
	for deadline := time.Now().Add(within); ; {
		fds := []unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, max(0, int(time.Until(deadline).Milliseconds())))
		if err == nil {
			return n == 1
		}
		if err != unix.EINTR {
			t.Fatal(err)
		}
	}
}

// startWorker starts a worker with a child that plays the part, and returns it,
// its reaper's pid and the pids that the child told.
func startWorker(t *testing.T, how, part string) (*exec.Cmd, string, string) {
	t.Helper()
	spec := testSpec("worker", how, part)
	cmd := exec.Command(spec.Command, spec.Args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	reaper, pids, _ := strings.Cut(readLine(t, out), " ")
	if len(strings.Fields(pids)) != len(familyNames) {
		t.Fatalf("pids %q", pids)
	}
	return cmd, reaper, pids
}

var familyNames = [...]string{
	"the child", "its child", "its child without the cookie",
	"its child in another session", "its child in another session without the cookie",
}

// treeLine removes the first and the last pid of a family: those of the orphans
// that can be found without their parent. The last is killed when the test ends.
func treeLine(t *testing.T, line string) string {
	t.Helper()
	fields := strings.Fields(line)
	watch(t, atoi(t, fields[4]))
	return strings.Join(fields[1:4], " ")
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAKilledWorkerLeavesNoProcess(t *testing.T) {
	for _, how := range []string{"guarded", "robbed"} {
		t.Run(how, func(t *testing.T) {
			cmd, pid, line := startWorker(t, how, "family")
			family := watchAll(t, line)
			reaper := watchAll(t, pid)[0]
			for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
				if err := syscall.Kill(reaper.pid, sig); err != nil {
					t.Fatal(err)
				}
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			deadline := time.Now().Add(lifetime)
			for i, w := range family {
				if !w.gone(t, time.Until(deadline)) {
					t.Errorf("%s lives on", familyNames[i])
				}
			}
			if !reaper.gone(t, lifetime) {
				t.Error("the reaper lives on")
			}
		})
	}
}

func TestAKilledWorkerLeavesNoOrphanOfItsChildren(t *testing.T) {
	cmd, _, line := startWorker(t, "guarded", "clan")
	orphans := watchAll(t, treeLine(t, line))
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	deadline := time.Now().Add(lifetime)
	for i, w := range orphans {
		if !w.gone(t, time.Until(deadline)) {
			t.Errorf("%s lives on", familyNames[i+1])
		}
	}
}

func TestWithoutReaperAKilledWorkerLeavesProcesses(t *testing.T) {
	cmd, _, line := startWorker(t, "unguarded", "family")
	family := watchAll(t, line)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if family[0].gone(t, 500*time.Millisecond) {
		t.Errorf("%s is gone without a reaper: the test of the reaper shows nothing", familyNames[0])
	}
	for i, w := range family[1:] {
		if w.gone(t, 0) {
			t.Errorf("%s is gone without a reaper: the test of the reaper shows nothing", familyNames[i+1])
		}
	}
}

func TestDescendantsDoNotOutliveAStoppedChild(t *testing.T) {
	c := start(t, testLauncher(t), testSpec("family"))
	family := watchAll(t, readLine(t, c.Stdout))
	c.Stop(10 * time.Millisecond)
	for i, w := range family {
		if !w.gone(t, lifetime) {
			t.Errorf("%s lives on", familyNames[i])
		}
	}
}

func TestDescendantsDoNotOutliveAChildThatEndsByItself(t *testing.T) {
	c := start(t, testLauncher(t), testSpec("orphans"))
	line := readLine(t, c.Stdout)
	<-c.Done()
	// All but the one that hides, which is beyond reach by then, as the package
	// comment says.
	for i, field := range strings.Fields(treeLine(t, line)) {
		fd, err := unix.PidfdOpen(atoi(t, field), 0)
		if err != nil {
			continue // gone and reaped
		}
		if w := (watched{0, fd}); !w.gone(t, lifetime) {
			t.Errorf("%s lives on", familyNames[i+1])
		}
		unix.Close(fd)
	}
	if rest := readAll(t, c.Stdout); rest != "" { // ends, though its child held it open
		t.Errorf("read %q", rest)
	}
}

func TestNestedWorkerLeavesNoProcess(t *testing.T) {
	for name, end := range map[string]func(*Child){
		"stopped": func(c *Child) { c.Stop(10 * time.Millisecond) },
		"killed": func(c *Child) {
			_ = syscall.Kill(c.PID(), syscall.SIGKILL)
			<-c.Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, testLauncher(t), testSpec("worker", "guarded", "clan"))
			reaper, line, _ := strings.Cut(readLine(t, c.Stdout), " ")
			inner := watchAll(t, reaper+" "+treeLine(t, line))
			end(c)
			for i, w := range inner {
				if !w.gone(t, lifetime) {
					t.Errorf("%s lives on", append([]string{"the inner reaper"}, familyNames[1:]...)[i])
				}
			}
		})
	}
}

func TestADeadReaperIsReplaced(t *testing.T) {
	guards := make(chan int, 8)
	l, err := newLauncher(quiet(), options{reaperStarted: func(pid int) { guards <- pid }})
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, l, catSpec())
	for range 2 {
		if err := syscall.Kill(<-guards, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	<-guards
	select {
	case <-c.Done():
		t.Error("the child died with a reaper")
	default:
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestCloseDoesNotWaitForAReaperThatIsBeingReplaced(t *testing.T) {
	guards := make(chan int, 8)
	l, err := newLauncher(quiet(), options{reaperStarted: func(pid int) { guards <- pid }})
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(<-guards, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestDescriptorsAreNotInherited(t *testing.T) {
	// As a supervisor or a shell may leave one open for the worker.
	unexpected, err := unix.Open(os.DevNull, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(unexpected)
	guards := make(chan int, 1)
	l, err := newLauncher(quiet(), options{reaperStarted: func(pid int) { guards <- pid }})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	c := start(t, l, testSpec("fds"))
	want := "0 nonblocking: false\n1 nonblocking: false\n2 nonblocking: false\n"
	if diff := cmp.Diff(want, readAll(t, c.Stdout)); diff != "" {
		t.Error("a child has other descriptors:", diff)
	}

	dir := "/proc/" + strconv.Itoa(<-guards) + "/fd"
	names, err := readNames(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		switch target, _ := os.Readlink(dir + "/" + name); {
		case name == "0" && strings.HasPrefix(target, "pipe:"):
		case name == "2" && target == os.DevNull:
		case strings.HasPrefix(target, "anon_inode:"), strings.HasPrefix(target, "/sys/fs/cgroup/"): // opened by the runtime
		case name == "1" && strings.HasPrefix(target, "pipe:"): // being closed
		default:
			t.Errorf("the reaper has descriptor %s: %s", name, target)
		}
	}
}

func TestStartAndStopLeakNoResources(t *testing.T) {
	l := testLauncher(t)
	cycle := func() {
		c, err := l.Start(catSpec())
		if err != nil {
			t.Fatal(err)
		}
		c.Stop(10 * time.Second)
	}
	cycle() // whatever is made once is made now
	l.owners.Wait()
	fds, goroutines := openDescriptors(t), runtime.NumGoroutine()
	for range 200 {
		cycle()
	}
	l.owners.Wait() // what an owner does after its child is done
	if got := openDescriptors(t); got != fds {
		t.Errorf("%d descriptors before, %d after", fds, got)
	}
	// One that is just ending may be counted; a leak would be hundreds.
	if got := runtime.NumGoroutine(); got > goroutines+10 {
		t.Errorf("%d goroutines before, %d after", goroutines, got)
	}
	if used := l.budget.used.Load(); used != 0 {
		t.Errorf("%d bytes of the pipe budget are not given back", used)
	}
	if z := zombies(t); len(z) > 0 {
		t.Errorf("zombies: %v", z)
	}
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	names, err := readNames("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// zombies returns the children of this process that were not reaped.
func zombies(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pid := range childrenOf(os.Getpid()) {
		stat := string(readProc(pid, "stat", nil))
		if _, rest, _ := strings.Cut(stat, ") "); strings.HasPrefix(rest, "Z") {
			found = append(found, stat)
		}
	}
	return found
}

func TestChildrenNeedNoThreadEach(t *testing.T) {
	const many = 100
	l := testLauncher(t)
	before := threads(t)
	children := make([]*Child, many)
	var starts sync.WaitGroup
	few := make(chan struct{}, 10) // a start blocks a thread until the program runs
	for i := range children {
		starts.Go(func() {
			few <- struct{}{}
			defer func() { <-few }()
			c, err := l.Start(catSpec())
			if err != nil {
				t.Error(err)
				return
			}
			children[i] = c
			if _, err := c.Stdin.Write([]byte("hello\n")); err != nil {
				t.Error(err)
			}
			readLine(t, c.Stdout)
		})
	}
	starts.Wait()
	if t.Failed() {
		t.FailNow()
	}
	if n := threads(t) - before; n > many/2 {
		t.Errorf("%d threads more for %d children", n, many)
	}
	var stops sync.WaitGroup
	for _, c := range children {
		stops.Go(func() { c.Stop(10 * time.Second) })
	}
	stops.Wait()
}

func threads(t *testing.T) int {
	t.Helper()
	names, err := readNames("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func TestStartTimeIsParsedForAnyProcessName(t *testing.T) {
	rest := " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21\n"
	for stat, want := range map[string]uint64{
		"17 (cat)" + rest:        4711,
		"17 (a) S 1 (c))" + rest: 4711,
		"17 (cat) S 1 2":         0,
		"":                       0,
	} {
		if got := parseStart([]byte(stat)); got != want {
			t.Errorf("%q: %d, want %d", stat, got, want)
		}
	}
	if startOf(os.Getpid()) == 0 {
		t.Error("our own start time was not found")
	}
}

func TestPipesAreLargeUntilTheBudgetIsSpent(t *testing.T) {
	var b pipeBudget
	size := func() (int, int64) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		took := b.enlarge(w)
		n := 0
		control(w, func(fd int) { n, err = unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0) })
		if err != nil {
			t.Fatal(err)
		}
		return n, took
	}
	if n, took := size(); n != pipeLarge || took != pipeLarge {
		t.Errorf("first pipe: %d bytes, took %d", n, took)
	}
	b.used.Store(budgetSoft)
	if n, took := size(); n != pipeMiddle || took != pipeMiddle {
		t.Errorf("later pipe: %d bytes, took %d", n, took)
	}
	b.used.Store(budgetHard)
	if n, took := size(); n >= pipeMiddle || took != 0 {
		t.Errorf("last pipe: %d bytes, took %d", n, took)
	}
}
