// Package fabric runs a whole Callyard in containers, for tests: NATS, Redis, front
// doors, workers and an approver, as deploy/compose.yaml has them.
//
//	f := fabric.Start(t, fabric.Options{})
//	client, err := callyard.New(f.URL(), f.Key)
//
// [Start] gives a test a fabric of its own; [Open] and [Fabric.Watch] share one among the
// tests of a binary. The images are built from the source of this module, with what is on
// the machine: nothing is pulled, and [Options].Images names others.
//
// It promises that what it started is gone when [Fabric.Close] returns, that what a killed
// test left is removed by the next one on the same machine, and that a test which fails
// shows the last lines of every part. It refuses to work without a container engine on
// this machine (folders of it are mounted): there is an error, never a skipped test.
//
// A [Fabric] and its parts may be used by many goroutines, but parts are added, stopped and
// started by one at a time.
package fabric
