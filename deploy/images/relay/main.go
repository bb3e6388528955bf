// Command relay is all that stands in the network of a box that may reach some
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
	l, err := net.Listen("tcp", egress.RelayAddress)
	if err == nil {
		err = egress.RunRelay(l, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		os.Exit(1)
	}
}
