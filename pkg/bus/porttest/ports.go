// Package porttest gives tests ports of loopback for processes that are told where to
// listen, above all for those that stop and then listen on the same port again.
//
// It owns a row of ports for as long as the test process lives: no other test
// process is given one of them. They lie below the ports that the system gives to
// connections. Among those, a port whose process is away for a moment may be taken
// by any connection on the machine, even by that of a client which keeps asking for
// that very port and comes to talk to itself.
//
// It refuses to give ports to anything but tests: nothing keeps strangers from them.
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
	row   = 200 // ports of one test process; the first one is its claim on the others
)

// errNone names the fault and the fix.
var errNone = fmt.Errorf("there are not enough free ports on 127.0.0.1 between %d and %d: stop the processes that listen there", least, most)

// own is the row of this process.
var own struct {
	sync.Mutex
	claim net.Listener // held until the process ends
	first int
	next  int // counts on: a port that was given comes again after all others
}

// Free returns n different ports on which nobody listens at this moment. It is safe
// for concurrent use.
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

// Ports is Free for a test, which ends when there are too few.
func Ports(t testing.TB, n int) []int {
	t.Helper()
	ports, err := Free(n)
	if err != nil {
		t.Fatal(err)
	}
	return ports
}

// Port is Ports for one.
func Port(t testing.TB) int {
	t.Helper()
	return Ports(t, 1)[0]
}

// Address returns "127.0.0.1:PORT" with a port on which nobody listens.
func Address(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(Port(t)))
}
