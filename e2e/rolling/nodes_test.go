package rolling

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/callyard/callyard/pkg/bus/porttest"
)

// cuttablePath is a connection path between two nodes of a cluster that can be cut.
type cuttablePath struct {
	listener net.Listener
	to       string
	wait     sync.WaitGroup

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

func openCuttablePath(t testing.TB, to string) *cuttablePath {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &cuttablePath{listener: l, to: to, conns: map[net.Conn]bool{}}
	w.wait.Go(w.serve)
	t.Cleanup(func() {
		_ = l.Close() // which ends serve
		w.set(true)
		w.wait.Wait()
	})
	return w
}

func (w *cuttablePath) serve() {
	for {
		from, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.wait.Go(func() { w.carry(from) })
	}
}

// carry forwards bytes until one side closes or the wire is cut.
func (w *cuttablePath) carry(from net.Conn) {
	to, err := net.Dial("tcp", w.to)
	if err != nil {
		_ = from.Close()
		return
	}
	w.mu.Lock()
	ends := []net.Conn{from, to}
	for _, c := range ends {
		w.conns[c] = true
	}
	if w.cut {
		_ = from.Close()
		_ = to.Close()
	}
	w.mu.Unlock()
	var both sync.WaitGroup
	for i := range ends {
		both.Go(func() {
			_, _ = io.Copy(ends[i], ends[1-i]) // ends when one side closes
			_ = ends[i].Close()
			_ = ends[1-i].Close()
		})
	}
	both.Wait()
	w.mu.Lock()
	for _, c := range ends {
		delete(w.conns, c)
	}
	w.mu.Unlock()
}

// set cuts the wire, or reconnects it. A cut closes its connections, and
// closes new ones immediately.
func (w *cuttablePath) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	if cut {
		for c := range w.conns {
			_ = c.Close()
		}
	}
}

func TestStoredCallSurvivesKillAndPartitionOfANode(t *testing.T) {
	t.Parallel()
	ports := porttest.Ports(t, portsOfCluster)
	wires := map[[2]int]*cuttablePath{}
	for i := range 3 {
		for j := range 3 {
			if i != j {
				wires[[2]int{i, j}] = openCuttablePath(t, fmt.Sprintf("127.0.0.1:%d", ports[3*j+1]))
			}
		}
	}
	c := startCluster(t, ports, func(i, j int) string { return wires[[2]int{i, j}].listener.Addr().String() })
	f := openFabric(t, newProcessFiles(t, c.url(), ""), c, 0)
	// Stored calls: the tool is not safe to repeat, and each has a key.
	lanes := [kinds]int{stored: 6}
	l := startLoad(t, f.processFiles, f.front, nil, lanes)
	l.calm(t, 3, lanes, "the start")

	// The leader is killed as by a power cut.
	leads := c.leads(t)
	c.nodes[leads].Kill9(t)
	l.calm(t, 5, lanes, "the kill of "+c.nodes[leads].name)
	c.start(t, leads)
	c.healthy(t, c.nodes[leads])
	l.calm(t, 3, lanes, "its return")

	// Then the leader is partitioned from the others. Its clients stay
	// connected, without effect.
	leads = c.leads(t)
	side := func(cut bool) {
		for ends, w := range wires {
			if ends[0] == leads || ends[1] == leads {
				w.set(cut)
			}
		}
	}
	l.cut.Store(true)
	side(true)
	l.calm(t, 5, lanes, "the partition of "+c.nodes[leads].name)
	side(false)
	for _, n := range c.nodes {
		c.healthy(t, n)
	}
	l.calm(t, 3, lanes, "its end")
	l.check(t)
	if n := len(l.unknown); n > 2*lanes[stored] {
		t.Errorf("of %d calls nobody knows what became of them, and %d callers were there", n, lanes[stored])
	}
}
