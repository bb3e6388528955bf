// Package rolling upgrades, restarts and breaks a fabric part by part while callers
// continue: every role, each node of a NATS cluster of three, Redis behind Sentinels,
// versions that differ, two regions.
//
// Its callers are honest, and one file defines their behavior
// ([honest_test.go]): they retry after a refusal if the response allows it, and resend
// requests that were never sent or are safe to repeat. The tests promise
// that no such caller sees a failure, that calls that are not safe to repeat run at most once,
// and that the responses match the runs.
package rolling
