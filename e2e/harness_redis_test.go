package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/confirm/confirmtest"
)

// sentinels watch a Redis, and promote its replica when it is gone.
type sentinels struct {
	addresses []string
	master    string // the name by which they know it
}

const (
	sentinelCount  = 3
	sentinelQuorum = 2
)

// startSentinels starts Sentinels over a Redis with a replica and waits until each
// knows both and the others.
func startSentinels(t testing.TB, main *confirmtest.Redis) *sentinels {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("no redis-server: run the tests with scripts/test.sh, which installs it")
	}
	s := &sentinels{master: "callyard"}
	host, port, _ := net.SplitHostPort(main.Address)
	for range sentinelCount {
		address, dir := confirmtest.FreeAddress(t), t.TempDir()
		_, own, _ := net.SplitHostPort(address)
		config := filepath.Join(dir, "sentinel.conf")
		// The replica's link was cut before its main server dies, which Sentinel
		// forgives for ten times the first of these.
		write(t, config, fmt.Sprintf(`port %s
bind 127.0.0.1
dir %s
sentinel monitor %s %s %s %d
sentinel down-after-milliseconds %s 3000
sentinel failover-timeout %s 10000
`, own, dir, s.master, host, port, sentinelQuorum, s.master, s.master))
		p := start(t, program{name: "sentinel", path: path, args: []string{config, "--sentinel"}})
		p.says(t, `Sentinel ID is`)
		s.addresses = append(s.addresses, address)
	}
	for _, address := range s.addresses {
		eventually(t, startWithin, "the Sentinel at "+address+" knows the others", func() error {
			state, err := s.ask(t, address, "SENTINEL", "MASTER", s.master)
			if err != nil {
				return err
			}
			known := map[string]string{}
			switch fields := state.(type) {
			case map[any]any:
				for name, value := range fields {
					known[fmt.Sprint(name)] = fmt.Sprint(value)
				}
			case []any:
				for i := 0; i+1 < len(fields); i += 2 {
					known[fmt.Sprint(fields[i])] = fmt.Sprint(fields[i+1])
				}
			}
			if known["num-slaves"] != "1" || known["num-other-sentinels"] != fmt.Sprint(sentinelCount-1) {
				return fmt.Errorf("it knows %s replicas and %s others", known["num-slaves"], known["num-other-sentinels"])
			}
			return nil
		})
	}
	return s
}

// ask sends a command to one of the Sentinels.
func (s *sentinels) ask(t testing.TB, address string, command ...any) (any, error) {
	t.Helper()
	client, err := confirm.RedisOptions{Addresses: []string{address}}.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	return client.Do(context.Background(), command...).Result()
}

// promoted waits until all of them name this Redis as the main one.
func (s *sentinels) promoted(t testing.TB, to *confirmtest.Redis) {
	t.Helper()
	for _, at := range s.addresses {
		eventually(t, startWithin, "the Sentinel at "+at+" names the promoted replica", func() error {
			got, err := s.ask(t, at, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.master)
			if err != nil {
				return err
			}
			if pair, ok := got.([]any); !ok || len(pair) != 2 || fmt.Sprintf("%v:%v", pair...) != to.Address {
				return fmt.Errorf("it names %v", got)
			}
			return nil
		})
	}
}

// section is the section of the configuration that names them.
func (s *sentinels) section() string {
	text := "redis:\n  master: " + s.master + "\n  addresses:\n"
	for _, address := range s.addresses {
		text += "    - " + address + "\n"
	}
	return text
}

// follows waits until the replica has what its main server has by now.
func follows(t testing.TB, main, replica *confirmtest.Redis) {
	t.Helper()
	mark := "mark of a test"
	if err := main.Client.Set(t.Context(), mark, 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "the replica follows", func() error {
		n, err := replica.Client.Exists(t.Context(), mark).Result()
		if err == nil && n == 0 {
			err = errors.New("it has not seen the last write")
		}
		return err
	})
}

// cut ends replication, as a partition does: what the main server does from here on
// the replica never learns.
func cut(t testing.TB, main, replica *confirmtest.Redis) {
	t.Helper()
	ctx := t.Context()
	for _, err := range []error{
		// A replica that cannot sign in does not follow.
		replica.Client.ConfigSet(ctx, "masterauth", "wrong").Err(),
		main.Client.Do(ctx, "CLIENT", "KILL", "TYPE", "replica").Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, soon, "the link is cut", func() error {
		n, err := main.Client.Do(ctx, "WAIT", 1, 1).Int()
		if err == nil && n != 0 {
			err = errors.New("a replica answers")
		}
		return err
	})
}

// unspent is how many tokens a Redis takes for good still.
func unspent(t testing.TB, s *confirmtest.Redis) (n int) {
	t.Helper()
	ctx := t.Context()
	tokens, err := s.Client.Keys(ctx, "callyard:token:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens {
		spent, err := s.Client.HExists(ctx, token, "attempt").Result()
		if err != nil {
			t.Fatal(err)
		}
		if !spent {
			n++
		}
	}
	return n
}
