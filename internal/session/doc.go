// Package session holds the live MCP client sessions of one worker. It opens
// sessions, shares them between calls, checks their health and replaces them.
//
// A [Pool] owns the sessions of one server. The go-sdk drives the lifecycle of a
// session (discovery or handshake, the notification stream, closing). Calls and
// lists use the same connection with request ids of our own, so that arguments
// and results pass through unchanged.
//
// It promises that every call ends exactly once, by its answer, its timeout, its
// cancellation or the end of its session; that an ended call reports whether its
// request may have reached the server; that a server which crashes, floods, hangs
// or violates the protocol costs bounded memory and does not affect other pools;
// and that after [Pool.Close] no goroutine, process or descriptor of it is left.
//
// It refuses to decode arguments or results, to retry a call that may have been
// sent, and to declare client capabilities on a session that callers share: a
// server cannot ask the worker for sampling, roots or input. If a server may ask
// its callers, each caller has its own session (see [Own]).
//
// It is one package because a session is one state machine: how it starts, reads,
// cancels, is checked and replaced all work on the same lock and the same table of calls.
package session
