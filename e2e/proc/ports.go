package proc

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// FreePorts returns ports of loopback that nobody listens on. They lie below those
// that the system gives to connections, so that a process finds its own again after
// it was away.
func FreePorts(t testing.TB, n int) []int {
	t.Helper()
	const least, most = 12_000, 30_000
	var ports []int
	for range 1000 {
		if len(ports) == n {
			return ports
		}
		port := least + rand.IntN(most-least)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer l.Close() // held until all are chosen, so that they differ
		ports = append(ports, port)
	}
	t.Fatal("there are not enough free ports on 127.0.0.1")
	return nil
}
