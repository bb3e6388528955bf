// Package e2e holds the tests that see Callyard from outside: the real programs,
// a real nats-server, real MCP servers, one file for each story.
//
// Its harness promises that the programs are built once for a run, that every
// process which a test starts ends with that test, and that what a process said
// is shown when its test fails. It refuses to look inside: a test asks over HTTP,
// reads what a process prints, and counts processes and descriptors as an
// operator would.
//
// scripts/test.sh brings what the tests need.
package e2e
