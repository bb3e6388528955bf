// Package trainer is a small client of OpenEnv's WebSocket: what a trainer's generator of
// rollouts does, with as little work of its own as possible, so that the server is measured
// and not the client. It speaks to any server of OpenEnv 0.10, also to OpenEnv's own.
//
// It promises one message under way for each connection. It refuses to interpret results.
package trainer
