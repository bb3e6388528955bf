// Package rollout serves environments to programs that train models. One listener speaks the
// protocol of OpenEnv 0.10 (HTTP and WebSocket), the Open Reward Standard, the three routes of
// a NeMo Gym resources server, and the reward service.
//
// It owns the wire formats of these protocols and the sessions of their clients. What an
// episode is and what it is worth belongs to packages episode and reward.
//
// It promises that a call which a client sends again with its task id runs once, that the
// client knows the id before anything runs, and that an episode of a connection ends with it.
//
// It refuses to start a process, and to show a trainer the solution of a task.
package rollout
