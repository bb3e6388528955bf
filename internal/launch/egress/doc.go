// Package egress is the only network egress of a sandbox: an HTTP proxy with a list of allowed
// destinations.
//
// # Guarantees
//
//   - [Parse] reads the operator's list of names with explicit ports. A host that is not on it is
//     refused before its name is resolved, so that DNS queries leak nothing.
//   - [Proxy] connects only to listed destinations and checks the address of each connection when
//     it connects. Addresses in private networks and of this machine's interfaces are refused
//     unless the operator allowed exactly that destination by name. Link-local addresses and cloud
//     metadata addresses are never reached.
//   - Every decision is counted and logged with its host. Content is not logged.
//   - [Tunnel] and [RunForwarder] carry connections through a pair of pipes. A sandbox has no
//     network but loopback; a forwarder in another container listens there, and its connections
//     arrive at the Tunnel.
//
// # Limits
//
// The proxy does not inspect TLS, follows no redirects, caches nothing and uses no other proxy. It
// accepts only connections of the listener that it serves and opens no port on this machine.
package egress
