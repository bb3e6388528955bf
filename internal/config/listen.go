package config

import (
	"net"
	"strings"
)

// Loopback says that an address to listen on, host and port, can be reached from
// this machine only. A host name other than localhost counts as reachable.
func Loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
