// Package rolling upgrades, restarts and breaks a fabric part by part while callers
// continue: every role, each node of a NATS cluster of three, Redis behind Sentinels,
// versions that differ, two regions.
//
// Its callers are honest, and what they may do is written in one place
// ([honest_test.go]): they retry after a refusal when they were told to, send
// again what never left or is theirs to repeat, and nothing else. The tests promise
// that no such caller is failed, that what is not safe to repeat runs at most once,
// and that what was told matches what ran.
package rolling
