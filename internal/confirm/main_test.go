package confirm_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/confirm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a redis-server process of a test.
type server struct {
	cmd     *exec.Cmd
	dir     string
	address string
	done    chan struct{} // its output has ended
}

// startRedis runs a redis-server until the test ends. Without a port in args it
// listens on a unix socket.
func startRedis(t *testing.T, dir, address string, args ...string) *server {
	t.Helper()
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "cy"); err != nil { //nolint:usetesting // the path of a socket must be short
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
	}
	base := []string{"--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no"}
	if address == "" {
		address = filepath.Join(dir, "s")
		base = append(base, "--port", "0", "--unixsocket", address)
	} else if _, port, err := net.SplitHostPort(address); err == nil {
		base = append(base, "--bind", "127.0.0.1", "--port", port)
	}
	s := &server{cmd: exec.Command("redis-server", append(base, args...)...), dir: dir, address: address, done: make(chan struct{})}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("redis-server (Debian package redis-server): %v", err)
	}
	ready := make(chan bool, 1)
	go func() {
		defer close(s.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.Contains(strings.ToLower(lines.Text()), "ready to accept connections") {
				select {
				case ready <- true:
				default:
				}
			}
		}
		_, _ = io.Copy(io.Discard, out)
		close(ready)
	}()
	t.Cleanup(s.kill)
	if !<-ready {
		t.Fatal("redis-server ended at once")
	}
	return s
}

// kill ends the server as a crash would.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
	_ = s.cmd.Wait()
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr())
}

func openRedis(t *testing.T, o confirm.RedisOptions) *confirm.Redis {
	t.Helper()
	r, err := confirm.OpenRedis(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func (s *server) store(t *testing.T, now func() time.Time) *confirm.Redis {
	t.Helper()
	return openRedis(t, confirm.RedisOptions{Addresses: []string{s.address}, Now: now})
}
