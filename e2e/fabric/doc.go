// Package fabric runs a whole Callyard in containers, for tests: NATS, Redis, front
// doors, workers and an approver, as in deploy/compose.yaml.
//
//	f := fabric.Start(t, fabric.Options{})
//	client, err := callyard.New(f.URL(), f.Key)
//
// [Start] gives a test a separate fabric. [Open] and [Fabric.Watch] share one among the
// tests of a binary. The images are built from the source of this module with the tools of
// the machine: nothing is pulled, and [Options].Images selects other images.
//
// It promises that everything it started is removed when [Fabric.Close] returns, that the
// leftovers of a killed test are removed by the next one on the same machine, and that a test
// that fails shows the last log lines of every part. It refuses to work without a container
// engine on this machine (whose folders it mounts): it returns an error and never skips a test.
//
// A [Fabric] and its parts are safe for concurrent use, except that only one goroutine at a
// time may add, stop or start parts.
package fabric
