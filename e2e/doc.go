// Package e2e holds the end-to-end tests of Callyard: the real programs,
// a real nats-server and real MCP servers, one file for each story.
//
// Its harness promises that the programs are built once per run, that every
// process which a test starts ends with that test, and that the output of a process
// is shown when its test fails. It refuses to look inside: a test sends HTTP requests,
// reads the output of processes, and counts processes and descriptors, as an
// operator would.
//
// scripts/test.sh installs the dependencies of the tests.
package e2e
