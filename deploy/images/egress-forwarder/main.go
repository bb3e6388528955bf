// Command forwarder is the only peer in the network of a sandbox with restricted egress. It
// listens on loopback there and forwards the connections over its standard input and output
// to the worker, which decides about them.
package main

import (
	"fmt"
	"net"
	"os"

	"github.com/callyard/callyard/internal/launch/egress"
)

func main() {
	l, err := net.Listen("tcp", egress.ForwarderAddress)
	if err == nil {
		err = egress.RunForwarder(l, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "forwarder:", err)
		os.Exit(1)
	}
}
