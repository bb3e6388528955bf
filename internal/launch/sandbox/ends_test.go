package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/callyard/callyard/internal/launch"
)

func TestContainerReportsHowItEnded(t *testing.T) {
	e := engine(t)
	for _, c := range []struct {
		name string
		do   func(*Config)
		end  func(*Container)
		want string
	}{
		{"exits", func(c *Config) { c.Args = []string{"exit"} }, func(*Container) {}, "exited with code 7"},
		{"input ends", func(*Config) {}, func(c *Container) { c.Stdin.Close() }, "exited with code 0"},
		{"limit", func(*Config) {}, func(c *Container) { c.Limit(time.Now().Add(300 * time.Millisecond)) }, "was killed at its time limit"},
		{"time limit", func(c *Config) { c.Time = 300 * time.Millisecond }, func(c *Container) { c.Limit(time.Now().Add(time.Hour)) }, "was killed at its time limit"},
		{"deaf", func(c *Config) { c.Args = []string{"deaf"} }, func(c *Container) { c.Stop(10 * time.Millisecond) }, "was stopped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sandbox := start(t, e, spec(t, e, c.do))
			if err := sandbox.Err(); err != nil && c.name != "exits" && c.name != "time limit" {
				t.Errorf("a running container %v", err)
			}
			c.end(sandbox)
			if got := ended(t, sandbox); !strings.HasPrefix(got, c.want) {
				t.Errorf("it %s, want %s", got, c.want)
			}
			if ids := owned(t, e.o.Owner); slices.Contains(ids, sandbox.ID()) {
				t.Error("the container was said to be gone, and is there")
			}
		})
	}
}

func TestAHungSandboxIsRemovedAtItsDeadline(t *testing.T) {
	e := engine(t)
	sandbox := start(t, e, spec(t, e))
	k := opened(t, sandbox)
	deadline := time.Now().Add(700 * time.Millisecond)
	sandbox.Limit(deadline)
	if _, err := k.tool("hang", nil); err == nil {
		t.Error("a call that hangs was answered")
	}
	ended(t, sandbox)
	t.Logf("gone %v after the deadline", time.Since(deadline))
}

func TestStderrTailIsKeptWithoutSecrets(t *testing.T) {
	e := engine(t)
	sandbox := start(t, e, spec(t, e, func(c *Config) {
		c.Args = []string{"stderr"}
		c.Env = map[string]string{"API_KEY": "very-secret-value"}
	}))
	opened(t, sandbox)
	tail := sandbox.StderrTail()
	if !strings.Contains(tail, "last [value of API_KEY]") || strings.Contains(tail, "very-secret") || !strings.Contains(tail, "line 1999") {
		t.Errorf("stderr ends with %q", tail[max(0, len(tail)-200):])
	}
	if len(tail) > 9<<10 {
		t.Errorf("%d bytes of stderr are kept", len(tail))
	}
}

func TestLargeAnswerIsReceivedWhole(t *testing.T) {
	e := engine(t)
	k := opened(t, start(t, e, spec(t, e)))
	text := strings.Repeat("x", 4<<20)
	got, err := k.tool("echo", map[string]string{"text": text})
	if err != nil || got != text {
		t.Errorf("%d of %d bytes came, %v", len(got), len(text), err)
	}
}

func TestContainerWithUnreadOutputIsRemovedAtTheFirstTry(t *testing.T) {
	var log bytes.Buffer // read after Stop, when the container's owner no longer writes to it
	e := engine(t, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	sandbox := start(t, e, spec(t, e))
	k := opened(t, sandbox)
	text := strings.Repeat("x", 4<<20)
	request := `{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` + text + `"}}}` + "\n"
	if _, err := io.WriteString(sandbox.Stdin, request); err != nil {
		t.Fatal(err)
	}
	// From here the rest of the answer fills every buffer between the server and this test.
	if _, err := io.CopyN(io.Discard, k.in, 1<<20); err != nil {
		t.Fatal(err)
	}
	sandbox.Stop(0)
	if log.Len() > 0 {
		t.Errorf("the removal was logged:\n%s", &log)
	}
}

func TestUnusableImageRuntimeOrDockerEngineIsRefused(t *testing.T) {
	e := engine(t)
	pin := func(c Config) error {
		s, err := Resolve("s", c)
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Pin(t.Context(), s)
		return err
	}
	for name, err := range map[string]error{
		"no such image":             pin(Config{Image: "callyard-test-missing:latest"}),
		"no such digest":            pin(Config{Image: "callyard-test@sha256:" + strings.Repeat("0", 64)}),
		"no such runtime":           pin(Config{Image: prober(t), Runtime: "kata-none"}),
		"its image was not checked": func() error { s, _ := Resolve("s", Config{Image: "x"}); _, err := e.Start(t.Context(), s); return err }(),
		"no engine": func() error {
			_, err := Open(t.Context(), Options{Host: "unix:///nowhere.sock", Owner: "x", Log: quiet()})
			return err
		}(),
		"no certificates": func() error {
			_, err := Open(t.Context(), Options{Host: "tcp://192.0.2.1:2375", Owner: "x", Log: quiet()})
			return err
		}(),
		"no port": func() error {
			_, err := Open(t.Context(), Options{Host: "tcp://192.0.2.1", Owner: "x", Log: quiet()})
			return err
		}(),
		"unknown scheme": func() error {
			_, err := Open(t.Context(), Options{Host: "ssh://host", Owner: "x", Log: quiet()})
			return err
		}(),
		"bad certificates": func() error {
			_, err := Open(t.Context(), Options{Host: "tcp://192.0.2.1:2376", Certs: t.TempDir(), Owner: "x", Log: quiet()})
			return err
		}(),
		"invalid owner": func() error { _, err := Open(t.Context(), Options{Owner: "a b", Log: quiet()}); return err }(),
	} {
		if err == nil || len(err.Error()) < 50 || !strings.HasSuffix(strings.TrimRight(err.Error(), ")"), ".") && !strings.Contains(err.Error(), ";") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHangingDockerEngineDoesNotBlockOpen(t *testing.T) {
	path := t.TempDir() + "/e.sock"
	l, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := Open(ctx, Options{Host: "unix://" + path, Owner: "x", Log: quiet()}); err == nil {
		t.Error("an engine that says nothing was opened")
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestContainerLimitIsEnforced(t *testing.T) {
	e := engine(t, func(o *Options) { o.Limits.Containers = 2 })
	s := spec(t, e)
	first := start(t, e, s)
	start(t, e, s)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if c, err := e.Start(ctx, s); err == nil {
		c.Stop(0)
		t.Fatal("a third container was started")
	}
	first.Stop(0)
	start(t, e, s)
	if n := e.Containers(); n != 2 {
		t.Errorf("there are %d containers", n)
	}
}

func TestJanitorRemovesOnlyOrphanedContainers(t *testing.T) {
	scope := owner(t)
	in := func(scope string) func(*Options) { return func(o *Options) { o.Scope = scope } }
	dead, living, foreign, janitor := engine(t, in(scope), named("dead")), engine(t, in(scope), named("living")), engine(t, in(scope+"x"), named("foreign")), engine(t, in(scope), named("janitor"))
	deaf := func(c *Config) { c.Args = []string{"deaf"} }
	left := start(t, dead, spec(t, dead, deaf))
	kept := []*Container{start(t, living, spec(t, living, deaf)), start(t, foreign, spec(t, foreign, deaf)), start(t, janitor, spec(t, janitor, deaf))}

	// What this worker has itself and does not know of.
	lost := start(t, janitor, spec(t, janitor, deaf))
	janitor.mu.Lock()
	delete(janitor.live, lost.name)
	janitor.mu.Unlock()

	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() {
		janitor.Janitor(ctx, func(o string) bool { return o != dead.o.Owner })
	})
	began := time.Now()
	ended(t, left)
	t.Logf("gone after %v", time.Since(began))
	ended(t, lost)
	cancel()
	work.Wait()
	for _, c := range kept {
		if err := c.Err(); err != nil {
			t.Errorf("the container %s %v", c.name, err)
		}
	}
}

func named(name string) func(*Options) {
	return func(o *Options) { o.Owner = o.Owner[:min(len(o.Owner), 60)] + "-" + name }
}

func TestExpiredContainersOfAnyWorkerAreRemoved(t *testing.T) {
	theirs, ours := engine(t, named("theirs")), engine(t, named("ours"))
	s := spec(t, theirs, func(c *Config) { c.Args = []string{"deaf"} })
	s.Time = -maxIdle - 2*clockSlack
	c, err := theirs.Start(t.Context(), s)
	if err == nil { // its own timer may be quicker
		defer c.Stop(0)
		if _, err := ours.scan(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
		ended(t, c)
	}
	if left := owned(t, theirs.o.Owner); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// workerPart is a worker that starts a deaf container and waits to be killed.
func workerPart(owner, image string) int {
	l, err := launch.New(quiet())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	e, err := Open(context.Background(), Options{Owner: owner, Scope: owner, Remember: l.Remember, Log: quiet()})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	s, err := Resolve("deaf", Config{Image: image, Args: []string{"deaf"}})
	if err == nil {
		s, err = e.Pin(context.Background(), s)
	}
	for range 3 {
		if err == nil {
			_, err = e.Start(context.Background(), s)
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	select {}
}

func TestContainersOfAKilledWorkerAreRemovedWithinTenSeconds(t *testing.T) {
	who := owner(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	worker := exec.Command(self, "sandbox-test-worker", who, prober(t))
	out, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		_ = worker.Process.Kill()
		_ = worker.Wait()
		t.Fatalf("the worker said %q", line)
	}
	if n := len(owned(t, who)); n != 3 {
		t.Errorf("the worker has %d containers", n)
	}
	began := time.Now()
	if err := worker.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()
	// The engine tells of every end.
	ask := asker(t)
	events := ask.Events(t.Context(), client.EventsListOptions{Since: strconv.FormatInt(began.Unix()-1, 10), Filters: make(client.Filters).
		Add("event", "destroy").Add("label", labelOwner+"="+who)})
	for range 3 {
		select {
		case <-events.Messages:
		case err := <-events.Err:
			t.Fatal(err)
		case <-time.After(time.Minute):
			t.Fatalf("after %v there are %v", time.Since(began), owned(t, who))
		}
	}
	t.Logf("gone after %v", time.Since(began))
	if left := owned(t, who); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestSweepIgnoresInvalidNotes(t *testing.T) {
	for _, note := range []string{"", "x", "{}", `{"owner":"a"}`, `{"host":"nonsense","owner":"a"}`, `{"host":"tcp://192.0.2.1:1","owner":"a"}`} {
		Sweep(note)
	}
}

func TestUnknownRuntimeIsNamedInTheError(t *testing.T) {
	e := engine(t)
	s, err := Resolve("s", Config{Image: prober(t), Runtime: "runsc-missing"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Pin(t.Context(), s); err == nil || !strings.Contains(err.Error(), `"runsc-missing"`) || !strings.Contains(err.Error(), e.About().Default) {
		t.Errorf("it is pinned with %v", err)
	}
}
