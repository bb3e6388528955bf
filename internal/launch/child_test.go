package launch

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestBytesGoThroughAChildUnchanged(t *testing.T) {
	c := start(t, testLauncher(t), catSpec())
	sent := bytes.Repeat([]byte("0123456789abcdef"), 3<<16) // 3 MiB, more than the pipes hold
	go func() {
		_, _ = c.Stdin.Write(sent)
		c.Stdin.Close()
	}()
	got, err := io.ReadAll(c.Stdout)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("got %d bytes and %v, want the %d sent", len(got), err, len(sent))
	}
	<-c.Done()
	if got := c.Err().Error(); got != "exited with code 0" {
		t.Errorf("ended: %s", got)
	}
}

func TestChildGetsOnlyItsConfiguredEnvironment(t *testing.T) {
	t.Setenv("CANARY_SECRET", "of the worker")
	t.Setenv("NODE_OPTIONS", "--inspect")
	t.Setenv("LANG", "C.UTF-8")
	t.Setenv("TZ", "UTC")
	t.Setenv("USER", "worker")
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("HOME", "/nowhere")
	spec := testSpec("env")
	spec.Env = map[string]string{"API_KEY": "k=1 2", "HOME": "/srv/tool", "EMPTY": ""}
	c := start(t, testLauncher(t), spec)

	got := make(map[string]string)
	for line := range strings.Lines(readAll(t, c.Stdout)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if _, twice := got[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		got[name] = value
	}
	if !strings.HasSuffix(got[cookieVariable], ".1") {
		t.Errorf("cookie %q", got[cookieVariable])
	}
	delete(got, cookieVariable)
	want := map[string]string{
		"API_KEY": "k=1 2", "HOME": "/srv/tool", "EMPTY": "",
		"LANG": "C.UTF-8", "TZ": "UTC", "USER": "worker", "TMPDIR": os.Getenv("TMPDIR"), "PATH": os.Getenv("PATH"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestArgumentsReachTheProgramUnchanged(t *testing.T) {
	args := []string{"$HOME", "; rm -rf /", "`id`", "", "a b", "*", "'\"\n"}
	c := start(t, testLauncher(t), testSpec("args", args...))
	want := "\"$HOME\"\n\"; rm -rf /\"\n\"`id`\"\n\"\"\n\"a b\"\n\"*\"\n\"'\\\"\\n\"\n"
	if diff := cmp.Diff(want, readAll(t, c.Stdout)); diff != "" {
		t.Error(diff)
	}
}

func TestChildReportsHowItEnded(t *testing.T) {
	l := testLauncher(t)
	c := start(t, l, testSpec("exit", "3"))
	<-c.Done()
	if got := c.Err().Error(); got != "exited with code 3" {
		t.Errorf("ended: %s", got)
	}
	c = start(t, l, testSpec("stubborn"))
	if err := c.Err(); err != nil {
		t.Errorf("a running child has ended: %v", err)
	}
	readLine(t, c.Stdout)
	c.Stop(time.Millisecond)
	if got := c.Err().Error(); got != "was killed by signal: killed" {
		t.Errorf("ended: %s", got)
	}
}

func TestChildThatIgnoresEndOfInputGetsSIGTERM(t *testing.T) {
	c := start(t, testLauncher(t), testSpec("deaf"))
	readLine(t, c.Stdout)
	c.stop(0, time.Minute, drainTime)
	if got := c.Err().Error(); got != "exited with code 7" {
		t.Errorf("ended: %s", got)
	}
}

func TestConcurrentStopsUseTheShortestGracePeriod(t *testing.T) {
	c := start(t, testLauncher(t), testSpec("stubborn"))
	readLine(t, c.Stdout)
	began := time.Now()
	var stops sync.WaitGroup
	for i := range 8 {
		stops.Go(func() {
			if i == 0 {
				c.Stop(0)
			} else {
				c.Stop(time.Hour)
			}
			select {
			case <-c.Done():
			default:
				t.Error("Stop returned before the end")
			}
		})
	}
	stops.Wait()
	c.Stop(time.Hour)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestOutputWrittenBeforeStopCanBeRead(t *testing.T) {
	c := start(t, testLauncher(t), catSpec())
	sent := bytes.Repeat([]byte{'x'}, 32<<10)
	if _, err := c.Stdin.Write(sent); err != nil {
		t.Fatal(err)
	}
	got := make(chan int)
	go func() {
		<-c.Done() // late, but not too late
		n, _ := io.Copy(io.Discard, c.Stdout)
		got <- int(n)
	}()
	c.stop(10*time.Second, 10*time.Second, time.Minute)
	if n := <-got; n != len(sent) {
		t.Errorf("got %d bytes of %d", n, len(sent))
	}
}

func TestStderrTailIsKeptAndSanitized(t *testing.T) {
	spec := testSpec("stderr")
	spec.Env = map[string]string{"API_KEY": "sk-0123456789"}
	c := start(t, testLauncher(t), spec)
	<-c.Done()
	tail := c.StderrTail()
	if !strings.HasSuffix(tail, "line 3999\nlast [value of API_KEY] \uFFFD\\x07") {
		t.Errorf("tail ends %q", tail[max(0, len(tail)-60):])
	}
	if len(tail) < tailSize-100 || len(tail) > tailSize+100 {
		t.Errorf("the tail has %d bytes", len(tail))
	}
	if !utf8.ValidString(tail) {
		t.Error("not valid UTF-8")
	}
}

// slowLog is a log handler that is told of the first line and does not return for some time.
type slowLog struct {
	slog.Handler
	once  *sync.Once
	first func()
}

func (l slowLog) Enabled(context.Context, slog.Level) bool { return true }
func (l slowLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l slowLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "stderr" {
		l.once.Do(l.first)
	}
	return nil
}

func TestStderrOfAnEndedChildIsReadHoweverLate(t *testing.T) {
	started := make(chan *Child, 1)
	l, err := New(slog.New(slowLog{slog.DiscardHandler, new(sync.Once), func() {
		c := <-started
		polltest.Until(t, "the child is reaped", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.reaped
		})
		<-time.After(2 * stderrGrace)
	}}))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := start(t, l, testSpec("stderr"))
	started <- c
	<-c.Done()
	if tail := c.StderrTail(); !strings.Contains(tail, "line 3999\nlast") {
		t.Errorf("tail ends %q", tail[max(0, len(tail)-60):])
	}
}

func TestStartErrorsNameTheCauseAndTheFix(t *testing.T) {
	l := testLauncher(t)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		file := dir + "/" + name
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, test := range map[string]struct {
		change func(*Spec)
		want   []string
	}{
		"arguments in the command":   {func(s *Spec) { s.Command = "npx -y a-server" }, []string{`"npx -y a-server"`, `in "args"`}},
		"arguments after a path":     {func(s *Spec) { s.Command = "/usr/bin/no-node server.js" }, []string{"does not exist", `to "args"`}},
		"not in PATH":                {func(s *Spec) { s.Command = "no-such-command" }, []string{`"no-such-command"`, "PATH", "absolute path"}},
		"not in the spec PATH":       {func(s *Spec) { s.Command, s.Env = "cat", map[string]string{"PATH": dir} }, []string{`"cat"`, "PATH"}},
		"no such file":               {func(s *Spec) { s.Command = dir + "/none" }, []string{"/none", "no such file"}},
		"not executable":             {func(s *Spec) { s.Command = write("plain", "x", 0o644) }, []string{"/plain", "execute permission"}},
		"interpreter does not exist": {func(s *Spec) { s.Command = write("lost", "#!"+dir+"/none\n", 0o755) }, []string{"/lost", "interpreter"}},
		"text file without #!":       {func(s *Spec) { s.Command = write("text", "echo\n", 0o755) }, []string{"/text", "#!/bin/sh"}},
		"no directory":               {func(s *Spec) { s.Dir = dir + "/away" }, []string{"/away", "directory"}},
		"no command":                 {func(s *Spec) { s.Command = "" }, []string{"command"}},
		"remote":                     {func(s *Spec) { s.Type = "http" }, []string{`"http"`, "stdio"}},
		"NUL argument":               {func(s *Spec) { s.Args = []string{"a\x00b"} }, []string{"NUL"}},
		"NUL value":                  {func(s *Spec) { s.Env = map[string]string{"A": "\x00"} }, []string{"A ", "NUL"}},
		"bad name":                   {func(s *Spec) { s.Env = map[string]string{"A=B": "c"} }, []string{`"A=B"`}},
		"variable of the launcher":   {func(s *Spec) { s.Env = map[string]string{cookieVariable: "x"} }, []string{cookieVariable}},
		"variable of the reaper":     {func(s *Spec) { s.Env = map[string]string{reaperVariable: "1"} }, []string{reaperVariable}},
		"argument exceeds the limit of the kernel": {func(s *Spec) { s.Args = []string{strings.Repeat("x", 8<<20)} }, []string{"too long"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := catSpec()
			spec.ID = "broken"
			test.change(&spec)
			_, err := l.Start(spec)
			if schema.KindOf(err) != schema.KindServerFailed {
				t.Fatalf("kind %s: %v", schema.KindOf(err), err)
			}
			for _, want := range append(test.want, `"broken"`) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %s", err, want)
				}
			}
		})
	}
}

func TestTheCommandIsFoundInThePathOfTheSpec(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/greet", []byte("#!/bin/sh\necho hello from $0 in $PWD\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	spec := Spec{ID: "greet", Type: "stdio", Command: "greet", Env: map[string]string{"PATH": "relative:" + dir + ":/usr/bin:/bin"}, Dir: dir}
	c := start(t, testLauncher(t), spec)
	if got, want := readAll(t, c.Stdout), "hello from "+dir+"/greet in "+dir+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	spec.Command = "./greet"
	c = start(t, testLauncher(t), spec)
	if got, want := readAll(t, c.Stdout), "hello from ./greet in "+dir+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCloseStopsChildrenAndRefusesNewOnes(t *testing.T) {
	l, err := New(quiet())
	if err != nil {
		t.Fatal(err)
	}
	var children []*Child
	for range 3 {
		children = append(children, start(t, l, catSpec()))
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range children {
		select {
		case <-c.Done():
		default:
			t.Error("a child is left")
		}
	}
	if _, err := l.Start(catSpec()); schema.KindOf(err) != schema.KindServerFailed {
		t.Errorf("started after Close: %v", err)
	}
}

func TestMissingRunReaperInMainIsReported(t *testing.T) {
	t.Setenv(reaperVariable, "1")
	if _, err := New(quiet()); err == nil || !strings.Contains(err.Error(), "launch.RunReaper") {
		t.Errorf("got %v", err)
	}
}
