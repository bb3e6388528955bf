// Package stories tests user stories of Callyard, one file for each story, from
// outside: with containers that package fabric starts, through the generated Go
// client, the pages and Slack. It does not look into processes.
//
// The Go client is a separate module, and so is this package, which uses it like any other
// user's tests:
//
//	scripts/test.sh ./e2e/stories
//
// runs them after the required set-up.
// NATS clusters, partitions, upgrades and regions are in e2e/rolling, and the matrix of
// faults in e2e/chaos.
package stories
