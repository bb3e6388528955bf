package rolling

import (
	"errors"
	"fmt"
	"testing"

	"github.com/callyard/callyard/e2e/proc"
	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// fabric is two processes of each role over a NATS cluster.
type fabric struct {
	*processFiles
	cluster                   *cluster
	doors, approvers, workers []*role
	front, office             *proc.Balancer
}

func openFabric(t testing.TB, h *processFiles, c *cluster, approvers int) *fabric {
	t.Helper()
	f := &fabric{processFiles: h, cluster: c}
	ports := porttest.Ports(t, 4+approvers)
	for _, r := range []struct {
		name string
		n    int
		to   *[]*role
	}{{"worker", 2, &f.workers}, {"frontdoor", 2, &f.doors}, {"approver", approvers, &f.approvers}} {
		for range r.n {
			one := h.role(t, program{name: r.name, port: ports[0]})
			ports = ports[1:]
			one.up(t)
			*r.to = append(*r.to, one)
		}
	}
	for _, d := range f.doors {
		sees(t, d, len(f.workers))
	}
	f.front = proc.StartBalancer(t, client(t), f.doors[0].url, f.doors[1].url)
	if approvers > 0 {
		f.office = proc.StartBalancer(t, client(t), f.approvers[0].url, f.approvers[1].url)
	}
	return f
}

func TestRollingRestartOfAllProcessesFailsNoValidRequest(t *testing.T) {
	t.Parallel()
	ports := porttest.Ports(t, portsOfCluster+2)
	c := startCluster(t, ports[2:], nil)
	redis := [2]*confirmtest.Redis{confirmtest.StartRedis(t, "", fmt.Sprintf("127.0.0.1:%d", ports[0]))}
	redis[1] = confirmtest.StartRedis(t, "", fmt.Sprintf("127.0.0.1:%d", ports[1]), "--replicaof", fmt.Sprintf("127.0.0.1 %d", ports[0]))
	sentinels := proc.StartSentinels(t, redis[0])
	f := openFabric(t, newProcessFiles(t, c.url(), sentinels.Section()), c, 2)
	lanes := [kinds]int{2, 2, 2, 2, 1, 1}
	l := startLoad(t, f.processFiles, f.front, f.office, lanes)
	calm := func(what string) {
		t.Helper()
		l.calm(t, 1, lanes, what)
	}
	calm("the start")
	for _, w := range f.workers {
		w.Stop(t)
		calm("the stop of a worker")
		w.up(t)
		for _, d := range f.doors {
			sees(t, d, len(f.workers))
		}
	}
	for i, all := range [][]*role{f.approvers, f.doors} {
		b := []*proc.Balancer{f.office, f.front}[i]
		for _, r := range all {
			r.Stop(t)
			calm("the stop of " + r.Name)
			r.up(t)
			proc.Eventually(t, proc.Soon, "the new one is used", func() error { return b.Uses(r.url) })
		}
	}
	// The leader is last.
	last := c.leads(t)
	for i := 1; i <= len(c.nodes); i++ {
		n := (last + i) % len(c.nodes)
		c.retire(t, n, i != 2)
		calm("the stop of " + c.nodes[n].name)
		c.start(t, n)
		c.healthy(t, c.nodes[n])
		calm("the start of " + c.nodes[n].name)
	}
	// Redis: the replica, then the main server after a failover.
	restart := func(i int) {
		t.Helper()
		redis[i].Kill()
		redis[i] = confirmtest.StartRedis(t, "", redis[i].Address, "--replicaof", fmt.Sprintf("127.0.0.1 %d", ports[1-i]))
		proc.Eventually(t, proc.StartWithin, "the replica follows", func() error { return follows(t, redis[1-i], redis[i]) })
	}
	restart(1)
	calm("the restart of the replica of Redis")
	sentinels.Failover(t, redis[1])
	calm("the failover of Redis")
	restart(0)
	calm("the restart of the other Redis")
	l.check(t)
}

// follows returns an error unless the replica has the current data of its main server.
func follows(t testing.TB, main, replica *confirmtest.Redis) error {
	t.Helper()
	const mark = "mark of a test"
	if err := main.Client.Set(t.Context(), mark, 1, 0).Err(); err != nil {
		return err
	}
	n, err := replica.Client.Exists(t.Context(), mark).Result()
	if err == nil && n == 0 {
		err = errors.New("it has not seen the last write")
	}
	return err
}
