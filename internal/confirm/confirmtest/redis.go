package confirmtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// Redis is a redis-server process of a test.
type Redis struct {
	Address string
	// Client simulates the actions of an operator or a fault on the server.
	Client *redis.Client

	cmd  *exec.Cmd
	dir  string
	done chan struct{} // closed when the output of the server ends
}

// StartRedis runs a redis-server until the test ends. The server does not persist data on its
// own. If address is "", it listens on a unix socket. If dir is not "", it is the directory of
// a killed server whose dump the new one loads.
func StartRedis(t testing.TB, dir, address string, args ...string) *Redis {
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
	s := &Redis{Address: address, cmd: exec.Command("redis-server", append(base, args...)...), dir: dir, done: make(chan struct{})}
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
	t.Cleanup(s.Kill)
	if !<-ready {
		t.Fatal("redis-server ended at once")
	}
	s.Client = redis.NewClient(&redis.Options{Addr: address, ReadTimeout: time.Minute})
	t.Cleanup(func() { _ = s.Client.Close() })
	return s
}

// Kill kills the server, as a crash would.
func (s *Redis) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
	_ = s.cmd.Wait()
}

// Flush removes all keys.
func (s *Redis) Flush(ctx context.Context) error {
	if err := s.Client.FlushAll(ctx).Err(); err != nil {
		return fmt.Errorf("flushing Redis: %w", err)
	}
	return nil
}

// Dump saves the current data to disk.
func (s *Redis) Dump(ctx context.Context) error {
	if err := s.Client.Save(ctx).Err(); err != nil {
		return fmt.Errorf("dumping Redis: %w", err)
	}
	return nil
}

// Restart kills the server and starts a new one with the last dump.
func (s *Redis) Restart(t testing.TB) *Redis {
	t.Helper()
	s.Kill()
	if _, err := os.Stat(filepath.Join(s.dir, "dump.rdb")); err != nil {
		t.Error(err)
	}
	return StartRedis(t, s.dir, s.listens())
}

func (s *Redis) listens() string {
	if strings.HasPrefix(s.Address, "/") {
		return ""
	}
	return s.Address
}

// Replica starts a replica of this server, which must listen on a port.
func (s *Redis) Replica(t testing.TB) *Redis {
	t.Helper()
	host, port, _ := strings.Cut(s.Address, ":")
	return StartRedis(t, "", porttest.Address(t), "--replicaof", host+" "+port)
}

// Has waits until the server has that number of keys.
func (s *Redis) Has(t testing.TB, keys int) {
	t.Helper()
	polltest.Until(t, fmt.Sprintf("Redis has %d keys", keys), func() bool {
		n, err := s.Client.DBSize(t.Context()).Result()
		return err == nil && int(n) == keys
	})
}

// Promote makes a replica independent. It does not receive later changes of its former primary.
func (s *Redis) Promote(ctx context.Context) error {
	if err := s.Client.ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		return fmt.Errorf("promoting a replica: %w", err)
	}
	return nil
}

// Gate opens the server as a gate before a ledger. now may be nil. Closing the tokens closes
// the gate. It waits for a server that stands still for a moment.
func (s *Redis) Gate(t testing.TB, now func() time.Time) *confirm.Redis {
	t.Helper()
	r, err := confirm.OpenRedis(t.Context(), confirm.RedisOptions{Addresses: []string{s.Address}, Now: now, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
