package proc

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// Sentinels monitor a Redis, and promote its replica.
type Sentinels struct {
	Addresses []string
	Master    string // the name of the Redis in the Sentinels
}

const (
	sentinelCount  = 3
	sentinelQuorum = 2
)

// StartSentinels starts Sentinels for a Redis with a replica and waits until each
// knows both and the others.
func StartSentinels(t testing.TB, main *confirmtest.Redis) *Sentinels {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("no redis-server: run the tests with scripts/test.sh, which installs it")
	}
	s := &Sentinels{Master: "callyard"}
	host, port, _ := net.SplitHostPort(main.Address)
	for range sentinelCount {
		address, dir := porttest.Address(t), t.TempDir()
		_, own, _ := net.SplitHostPort(address)
		config := filepath.Join(dir, "sentinel.conf")
		// Only [Sentinels.Failover] begins a failover: Redis does not count as down while it, or the
		// machine, stands still. A replica can be promoted for ten times this time after its link
		// was cut.
		text := fmt.Sprintf(`port %s
bind 127.0.0.1
dir %s
sentinel monitor %s %s %s %d
sentinel down-after-milliseconds %s 60000
sentinel failover-timeout %s 10000
`, own, dir, s.Master, host, port, sentinelQuorum, s.Master, s.Master)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p := Start(t, Program{Name: "sentinel", Path: path, Args: []string{config, "--sentinel"}})
		p.Says(t, `Sentinel ID is`)
		s.Addresses = append(s.Addresses, address)
	}
	s.Know(t, 1)
	return s
}

// Know waits until each of them knows that number of replicas, and the others.
func (s *Sentinels) Know(t testing.TB, replicas int) {
	t.Helper()
	for _, address := range s.Addresses {
		Eventually(t, StartWithin, "the Sentinel at "+address+" knows the others", func() error {
			state, err := s.Ask(t, address, "SENTINEL", "MASTER", s.Master)
			if err != nil {
				return err
			}
			known := fields(state)
			if known["num-slaves"] != fmt.Sprint(replicas) || known["num-other-sentinels"] != fmt.Sprint(sentinelCount-1) {
				return fmt.Errorf("it knows %s replicas and %s others", known["num-slaves"], known["num-other-sentinels"])
			}
			return nil
		})
	}
}

// fields decodes names and values, in both forms that Redis returns.
func fields(answer any) map[string]string {
	known := map[string]string{}
	switch list := answer.(type) {
	case map[any]any:
		for name, value := range list {
			known[fmt.Sprint(name)] = fmt.Sprint(value)
		}
	case []any:
		for i := 0; i+1 < len(list); i += 2 {
			known[fmt.Sprint(list[i])] = fmt.Sprint(list[i+1])
		}
	}
	return known
}

// Ask sends a command to one of the Sentinels.
func (s *Sentinels) Ask(t testing.TB, address string, command ...any) (any, error) {
	t.Helper()
	client, err := confirm.RedisOptions{Addresses: []string{address}}.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	return client.Do(context.Background(), command...).Result()
}

// Failover promotes the replica, also if the main server is down, and waits until all of them
// report the replica as the main server.
func (s *Sentinels) Failover(t testing.TB, to *confirmtest.Redis) {
	t.Helper()
	Eventually(t, StartWithin, "a failover", func() error { // Sentinel must consider the replica healthy first
		_, err := s.Ask(t, s.Addresses[0], "SENTINEL", "FAILOVER", s.Master)
		return err
	})
	for _, at := range s.Addresses {
		Eventually(t, StartWithin, "the Sentinel at "+at+" names the promoted replica", func() error {
			got, err := s.Ask(t, at, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.Master)
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

// Section returns the configuration section for the Sentinels.
func (s *Sentinels) Section() string {
	text := "redis:\n  master: " + s.Master + "\n  addresses:\n"
	for _, address := range s.Addresses {
		text += "    - " + address + "\n"
	}
	return text
}
