// Package egress is the only egress of a sandbox that may reach something: an HTTP
// proxy with a list of places.
//
// # What it promises
//
//   - [Parse] reads the list that an operator wrote: names with ports, each
//     written out. What is not on it is refused before its name is looked up, so
//     that looking a name up tells nobody anything.
//   - [Proxy] makes a connection for a place of the list alone, and looks at the
//     address at the moment when it connects. Addresses in private networks are
//     refused unless the operator allowed the very place by name; those of this
//     machine's own interfaces likewise. Link-local addresses and those where
//     clouds hand out credentials are never reached.
//   - Every decision is counted and logged by its host; what travels is not.
//   - [Tunnel] and [RunForwarder] carry connections through a pair of pipes. A sandbox has
//     no network but loopback; there the forwarder listens, a program of ours in a
//     container of its own, and what it hears comes out here.
//
// # What it refuses
//
// It does not look into TLS, follows no redirect on its own, caches nothing, uses
// no other proxy, and lets nobody in: it answers on what it is given to serve and
// opens no port on this machine.
package egress
