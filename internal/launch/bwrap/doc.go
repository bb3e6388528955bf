// Package bwrap runs MCP servers in sandboxes of bubblewrap, one sandbox for one
// use, on machines that have no container engine. It is weaker than package sandbox,
// and an operator chooses it by name.
//
// # What it promises
//
//   - [Resolve] turns what an operator wrote into a [Spec] and puts in every
//     default.
//   - A sandbox has namespaces of its own of every kind, no network but loopback,
//     no capability, no new privileges, no user namespaces below it, a filter of
//     system calls, the system's programs read only, and a /tmp in memory as the
//     only place to write to. Of the environment it has what the operator listed.
//   - The limits hold before the first instruction of the server runs.
//   - Where the worker is root each sandbox runs as a user of its own, as it does
//     in a container.
//   - A sandbox is used once and does not outlive its time, nor its worker:
//     bubblewrap ends with its parent, and the reaper of package launch kills what
//     is left.
//
// # What it refuses
//
// It never runs anything outside: without the program bwrap, in a version that can
// do all this, or where the kernel denies user namespaces, it returns an error.
//
// # Where it is weaker than a container
//
// Limits are those of processes (rlimits) and not of a group: memory is limited for each
// process, cores not at all. The programs of the machine can be read and started. Programs
// can be started from /tmp. Nothing is started ahead. There is no egress to the network.
package bwrap
