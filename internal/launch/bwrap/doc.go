// Package bwrap runs MCP servers in bubblewrap sandboxes, one sandbox for one use, on machines
// without a container engine. It is weaker than package sandbox, and an operator selects it by
// name.
//
// # Guarantees
//
//   - [Resolve] turns the operator's settings into a [Spec] and adds every default.
//   - A sandbox has separate namespaces of every kind, no network but loopback, no capabilities, no
//     new privileges, no nested user namespaces, a system call filter, the system's programs
//     read-only, and a /tmp in memory as the only writable place. Its environment holds only
//     configured variables.
//   - The limits apply before the first instruction of the server runs.
//   - If the worker is root, each sandbox runs as a different user, as in a container.
//   - A sandbox is used once and outlives neither its time limit nor its worker: bubblewrap ends
//     with its parent, and the reaper of package launch kills remaining processes.
//
// # Limits
//
// It never runs a server outside a sandbox. It returns an error without the program bwrap, with a
// version that lacks a feature, or if the kernel denies user namespaces.
//
// # Weaker than a container
//
// Limits apply to processes (rlimits), not to a group: memory is limited per process, and CPU time
// not at all. The programs of the machine can be read and run. Programs can be run from /tmp. No
// sandbox is started in advance. There is no egress to the network.
package bwrap
