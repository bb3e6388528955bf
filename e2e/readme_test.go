package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The marks precede a block that must be run.
const (
	runMark        = "<!-- run -->"
	backgroundMark = "<!-- run background -->"
)

// block is a shell block of a document.
type block struct {
	where      string // file:line
	text       string
	background bool
}

// blocks returns the marked blocks of a document, in order. A mark without a
// block is an error, because its author expects it to run.
func blocks(name string, document []byte) ([]block, error) {
	var found []block
	lines := strings.Split(string(document), "\n")
	for i := 0; i < len(lines); i++ {
		mark := strings.TrimSpace(lines[i])
		if mark != runMark && mark != backgroundMark {
			continue
		}
		b := block{where: fmt.Sprintf("%s:%d", name, i+1), background: mark == backgroundMark}
		begin := i + 1
		if begin >= len(lines) || strings.TrimSpace(lines[begin]) != "```sh" {
			return nil, fmt.Errorf("%s: the mark has no ```sh on the next line", b.where)
		}
		end := slices.Index(lines[begin+1:], "```")
		if end < 0 {
			return nil, fmt.Errorf("%s: the block has no end", b.where)
		}
		b.text = strings.Join(lines[begin+1:begin+1+end], "\n") + "\n"
		found = append(found, b)
		i = begin + 1 + end
	}
	return found, nil
}

func TestCommandsInTheDocsWork(t *testing.T) {
	var names []string
	err := filepath.WalkDir(filepath.Join(programs.root, "docs"), func(name string, _ fs.DirEntry, err error) error {
		if filepath.Ext(name) == ".md" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []block
	for _, name := range append([]string{filepath.Join(programs.root, "README.md")}, names...) {
		document, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		short, _ := filepath.Rel(programs.root, name)
		found, err := blocks(short, document)
		if err != nil {
			t.Fatal(err)
		}
		if short == "README.md" && len(found) == 0 {
			t.Fatalf("%s has no block marked %s", short, runMark)
		}
		all = append(all, found...)
	}

	up := startUp(t, setup{servers: "deploy/examples/mcp.json", dir: programs.root, data: t.TempDir(), env: []string{
		quickStop, "MCP_SERVER_DEMO_COMMAND=" + filepath.Join(bin(t), "callyard"), "MCP_SERVER_DEMO_ARGS=demo-server",
	}})
	up.waitServers(t, 1, "calculator", "demo", "everything", "filesystem", "memory", "thinking")
	for _, b := range all {
		t.Run(strings.ReplaceAll(b.where, "/", "_"), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), answerWithin)
			defer cancel()
			cmd := exec.CommandContext(ctx, "bash", "-e", "-o", "pipefail", "-c", b.text)
			cmd.Dir = t.TempDir() // for the files that it writes; a link provides the examples
			if err := os.Symlink(filepath.Join(programs.root, "deploy"), filepath.Join(cmd.Dir, "deploy")); err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(cleanEnviron(), "CALLYARD_URL="+up.url, "URL="+up.url, "NO_PROXY=127.0.0.1", "PATH="+bin(t)+string(os.PathListSeparator)+os.Getenv("PATH"))
			if b.background {
				runInBackground(t, b, cmd)
				return
			}
			out, err := cmd.CombinedOutput()
			t.Logf("%s%s", b.text, out)
			if err != nil {
				t.Errorf("%s: %v", b.where, err)
			}
		})
	}
}

// runInBackground starts the block, waits for its output, and ends it
// like Ctrl-C.
func runInBackground(t *testing.T, b block, cmd *exec.Cmd) {
	t.Helper()
	var out output
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // ProcessState has the result
	}()
	signal := func(s syscall.Signal) {
		select {
		case <-done:
		default:
			_ = syscall.Kill(-cmd.Process.Pid, s) // it may be ending right now
		}
	}
	t.Cleanup(func() {
		signal(syscall.SIGKILL)
		<-done
	})
	eventually(t, soon, b.where+" says something", func() error {
		select {
		case <-done:
			t.Fatalf("%s ended by itself, %v: %s", b.where, cmd.ProcessState, out.String())
		default:
		}
		if out.String() == "" {
			return errors.New("it has not")
		}
		return nil
	})
	signal(syscall.SIGINT)
	select {
	case <-done:
	case <-time.After(stopWithin):
		t.Errorf("%s does not end when it is interrupted", b.where)
	}
	t.Logf("%s%s", b.text, out.Tail(2000))
}

func TestOnlyMarkedBlocksAreRun(t *testing.T) {
	document := "text\n```sh\nrm -rf no\n```\n" + runMark + "\n```sh\necho a\necho b\n```\nmore\n" + backgroundMark + "\n```sh\nsleep 1\n```\n"
	got, err := blocks("x.md", []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	want := []block{{where: "x.md:5", text: "echo a\necho b\n"}, {where: "x.md:11", text: "sleep 1\n", background: true}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []string{runMark, runMark + "\n\n```sh\nx\n```", runMark + "\n```sh\nx"} {
		if _, err := blocks("x.md", []byte(bad)); err == nil || !strings.Contains(err.Error(), "x.md:1") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
