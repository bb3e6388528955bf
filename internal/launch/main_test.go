package launch

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/pkg/schema"
)

// The test program plays all parts: the reaper, the servers, their descendants
// and, to be killed, a worker. The part is its first argument.
const partPrefix = "launch-test-"

func TestMain(m *testing.M) {
	if IsReaper() {
		os.Exit(RunReaper(handleNote))
	}
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], partPrefix) {
		os.Exit(playPart(strings.TrimPrefix(os.Args[1], partPrefix), os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

func playPart(part string, args []string) int {
	switch part {
	case "sleep":
		return sleep()
	case "exit":
		code, _ := strconv.Atoi(args[0])
		return code
	case "env":
		for _, v := range os.Environ() {
			fmt.Println(v)
		}
	case "args":
		for _, a := range args {
			fmt.Printf("%q\n", a)
		}
	case "stderr":
		for i := range 4000 {
			fmt.Fprintf(os.Stderr, "line %d\n", i)
		}
		fmt.Fprintf(os.Stderr, "\x1b[31mlast\x1b[0m %s \xff\x07", os.Getenv("API_KEY"))
	case "deaf": // to the end of stdin; SIGTERM ends it in its own way
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		fmt.Println("ready")
		<-term
		return 7
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		return sleep()
	case "family":
		return family(sleep)
	case "orphans":
		return family(func() int { return 0 })
	case "clan": // as orphans, but their grandparent stays
		orphans := exec.Command(os.Args[0], partPrefix+"orphans")
		orphans.Stdout = os.Stdout
		if err := orphans.Run(); err != nil {
			return 1
		}
		return sleep()
	case "worker":
		return worker(args[0], args[1])
	default:
		return playPlatformPart(part)
	}
	return 0
}

// sleep lasts longer than a test and not so long that a failed one leaves
// something behind for good.
func sleep() int {
	time.Sleep(time.Minute)
	return 0
}

// family starts a process in its own group, one there with a cleared environment,
// one in a session of its own, and one that has done both, and tells the pids: its
// own first, in the order of familyNames. The first holds on to stdout and stderr.
func family(then func() int) int {
	member := descendant()
	member.Stdout, member.Stderr = os.Stdout, os.Stderr
	bare := descendant()
	bare.Env = []string{"NOTHING=1"}
	away := descendant()
	away.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	hidden := descendant()
	hidden.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	hidden.Env = []string{"NOTHING=1"}
	fmt.Println(os.Getpid(), begin(member), begin(bare), begin(away), begin(hidden))
	return then()
}

func descendant() *exec.Cmd { return exec.Command(os.Args[0], partPrefix+"sleep") }

func begin(c *exec.Cmd) int {
	if err := c.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return c.Process.Pid
}

// worker starts a child that plays the part and tells the pid of its reaper, 0
// where it has none, and what the child tells.
func worker(how, part string) int {
	guards := make(chan int, 4)
	l, err := newLauncher(quiet(), options{noReaper: how == "unguarded", reaperStarted: func(pid int) { guards <- pid }})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	reaper := 0
	if how != "unguarded" {
		reaper = <-guards
	}
	c, err := l.Start(testSpec(part))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if how == "robbed" { // of its reaper, once
		_ = syscall.Kill(reaper, syscall.SIGKILL)
		reaper = <-guards
	}
	line, _ := bufio.NewReader(c.Stdout).ReadString('\n')
	fmt.Print(reaper, " ", line)
	return sleep()
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func testSpec(part string, args ...string) Spec {
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Spec{
		ID: schema.ServerID(part), Type: "stdio", Command: program, Args: append([]string{partPrefix + part}, args...),
		Env: map[string]string{"GORACE": "atexit_sleep_ms=0"}, // no second of waiting at each exit
	}
}

func catSpec() Spec { return Spec{ID: "cat", Type: "stdio", Command: "cat"} }

func testLauncher(t *testing.T) *Launcher {
	t.Helper()
	l, err := New(quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func start(t *testing.T, l *Launcher, spec Spec) *Child {
	t.Helper()
	c, err := l.Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop(0) })
	return c
}

// readLine reads one line of a child without reading further.
func readLine(t *testing.T, r io.Reader) string {
	t.Helper()
	var line []byte
	var b [1]byte
	for {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			t.Fatalf("after %q: %v", line, err)
		}
		if b[0] == '\n' {
			return string(line)
		}
		line = append(line, b[0])
	}
}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}
