// Package porttest provides tests with loopback ports for processes that are configured with
// their listen address, in particular for those that stop and later listen on the same port.
//
// It reserves a range of ports for the lifetime of the test process. No other test process gets
// a port of this range. The range is below the system's ephemeral ports. If a process stopped
// listening on an ephemeral port for a moment, any connection on the machine could take the
// port, even a client that retries that port and then connects to itself.
//
// It is for tests only, because processes other than tests can still take the ports.
package porttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

const (
	least = 12_000
	most  = 30_000
	row   = 200 // ports of one test process; the first one reserves the others
)

// errNone describes the error and the fix.
var errNone = fmt.Errorf("there are not enough free ports on 127.0.0.1 between %d and %d: stop the processes that listen there", least, most)

// own is the port range of this process.
var own struct {
	sync.Mutex
	claim net.Listener // held until the process ends
	first int
	next  int // increases only, so that a port is reused after all others
}

// Free returns n different ports on which no process listens at this moment. It is safe for
// concurrent use.
func Free(n int) ([]int, error) {
	own.Lock()
	defer own.Unlock()
	if err := claim(); err != nil {
		return nil, err
	}
	var ports []int
	for range row - 1 {
		if len(ports) == n {
			break
		}
		port := own.first + 1 + own.next%(row-1)
		own.next++
		if l, err := listen(port); err == nil {
			_ = l.Close()
			ports = append(ports, port)
		}
	}
	if len(ports) < n {
		return nil, errNone
	}
	return ports, nil
}

func claim() (err error) {
	if own.claim != nil {
		return nil
	}
	for _, i := range rand.Perm((most - least) / row) {
		own.first = least + i*row
		if own.claim, err = listen(own.first); err == nil {
			return nil
		}
	}
	return errors.Join(errNone, err)
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// Ports is Free for a test. It fails the test if there are not enough ports.
func Ports(t testing.TB, n int) []int {
	t.Helper()
	ports, err := Free(n)
	if err != nil {
		t.Fatal(err)
	}
	return ports
}

// Port returns one port; see [Ports].
func Port(t testing.TB) int {
	t.Helper()
	return Ports(t, 1)[0]
}

// Address returns "127.0.0.1:PORT" with a port on which no process listens.
func Address(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(Port(t)))
}
