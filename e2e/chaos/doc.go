// Package chaos breaks a fleet on purpose and checks what it promised: what was
// accepted ends, what is not safe to repeat runs at most once, and what nobody can
// know is said to be unknown.
//
// A [Campaign] is a fleet of real processes (a NATS server that syncs every write,
// front doors, workers with an MCP server that writes down each run), a load of
// durable calls by clients that retry as honest clients do, and a list of faults
// drawn from a seed. The faults are the same for the same seed; when exactly each
// of them meets which call is the machine's affair.
//
// The load and the faults pull each other along: a fault strikes when a share of
// the calls has ended, and no more calls begin than belong to the faults that have
// struck. So every fault meets calls that are under way, and no time is spent idle.
//
// Three records are compared at the end: what the clients were told, what the fleet
// has stored, and the file in which the MCP servers wrote each run. What is stored is
// asked for as any caller can, of front doors that have just started, so that nothing
// comes from their memory. Whatever does not fit is a finding. That the harness would see it is shown by a build of
// the front door without its guard (go build -overlay replaces one file of
// internal/batch), and by a NATS server that does not sync: both must have findings.
//
// It refuses to run against anything but processes that it started.
package chaos
