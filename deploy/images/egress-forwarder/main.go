// Command forwarder is all that stands in the network of a sandbox that may reach some
// places: it listens on loopback there and carries what it hears over its standard
// input and output to the worker, which decides.
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
