// Package rollout serves environments to programs that train models. One listener implements the
// protocol of OpenEnv 0.10 (HTTP and WebSocket), the Open Reward Standard, the three routes of
// a NeMo Gym resources server, and the reward service.
//
// It owns the wire formats of these protocols and the sessions of their clients. Packages episode
// and reward own episodes and rewards.
//
// A call that a client sends again with its task id runs once, and the client gets the id before
// anything runs. The episode of a WebSocket connection ends with the connection.
//
// The package starts no processes and never reveals the solution of a task to a trainer.
package rollout
