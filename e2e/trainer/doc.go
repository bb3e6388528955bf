// Package trainer is a small client of OpenEnv's WebSocket. It acts like the rollout generator
// of a trainer, with as little overhead as possible, so that tests measure the server
// and not the client. It works with any server of OpenEnv 0.10, including OpenEnv's own.
//
// It promises one message in flight per connection. It refuses to interpret results.
package trainer
