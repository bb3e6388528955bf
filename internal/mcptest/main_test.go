package mcptest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/mcptest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	mcptest.MaybeServe()
	goleak.VerifyTestMain(m)
}

// command returns the server of the mode, not yet started. It is killed if the test exceeds its time.
func command(t *testing.T, mode string, opts ...mcptest.Option) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	path, args, env := mcptest.Command(mode, opts...)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = os.Environ()
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return cmd
}

// peer is a client that reads the raw output.
type peer struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr *bufio.Reader
}

// start starts the server; it is killed at the end of the test if it still runs.
func start(t *testing.T, mode string, opts ...mcptest.Option) *peer {
	t.Helper()
	cmd := command(t, mode, opts...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
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
	return &peer{t: t, cmd: cmd, stdin: stdin, stdout: bufio.NewReader(stdout), stderr: bufio.NewReader(stderr)}
}

func (p *peer) send(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.t.Fatalf("sending %s: %v", line, err)
	}
}

// call sends a tools/call with the id.
func (p *peer) call(id int, tool, args string) {
	p.t.Helper()
	p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, args))
}

func (p *peer) ping(id int) {
	p.t.Helper()
	p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id))
}

func (p *peer) line() string {
	p.t.Helper()
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		p.t.Fatalf("reading a line: %v after %q", err, line)
	}
	return strings.TrimSuffix(line, "\n")
}

// rest closes stdin and returns the remaining output.
func (p *peer) rest() string {
	p.t.Helper()
	if err := p.stdin.Close(); err != nil {
		p.t.Fatal(err)
	}
	rest, err := io.ReadAll(p.stdout)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(rest)
}

// answer is a decoded line of the server.
type answer struct {
	ID     any    `json:"id"`
	Method string `json:"method"`
	Result struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError    bool             `json:"isError"`
		ResultType string           `json:"resultType"`
		Tools      []map[string]any `json:"tools"`
	} `json:"result"`
	Error struct {
		Code int             `json:"code"`
		Data json.RawMessage `json:"data"`
	} `json:"error"`
}

func decode(t *testing.T, line string) answer {
	t.Helper()
	var a answer
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		t.Fatalf("decoding %q: %v", line, err)
	}
	return a
}

func (a answer) text() string {
	if len(a.Result.Content) == 0 {
		return ""
	}
	return a.Result.Content[0].Text
}
