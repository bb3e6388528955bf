package config

import (
	"net"
	"strconv"

	"github.com/callyard/callyard/internal/kit/urls"
)

// AddressFault returns the fault of an address to listen on, as the end of a sentence that starts
// with its key. It returns "" if there is none.
func AddressFault(listen string) string {
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "is not a listen address; write host:port, such as 127.0.0.1:8080."
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "must end with a port from 0 to 65535; write host:port, such as 127.0.0.1:8080."
	}
	return ""
}

// Loopback reports whether an address to listen on, host and port, can be reached only from this
// machine. A host name other than localhost counts as reachable.
func Loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	return err == nil && urls.Loopback(host)
}
