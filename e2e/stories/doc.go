// Package stories tells what people do with Callyard, one file for each story, and checks
// it from outside: over containers that package fabric starts, through the generated Go
// client, the pages and Slack. It looks into no process.
//
// The Go client is a module of its own, and so is this package, which uses it as anybody's
// tests would:
//
//	scripts/test.sh ./e2e/stories
//
// runs them, after the set-up they need.
// The cluster of NATS, partitions, upgrades and regions are in e2e/rolling, the matrix of
// faults in e2e/chaos.
package stories
