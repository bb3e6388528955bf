// Package session holds the live MCP client sessions of one worker: it opens
// them, shares them between calls, checks them and replaces them.
//
// A [Pool] owns the sessions of one server. The go-sdk drives the life of a
// session (discovery or handshake, the notification stream, closing); calls and
// lists travel next to it on the same connection with request ids of our own, so
// that arguments and results stay the bytes that they are.
//
// It promises that every call ends exactly once, by its answer, its timeout, its
// cancellation or the death of its session; that an ended call says whether its
// request may have reached the server; that a server which crashes, floods,
// hangs or talks nonsense costs bounded memory and hurts no other pool; and that
// after [Pool.Close] no goroutine, process or descriptor of it is left.
//
// It refuses to decode arguments or results, to retry a call that may have left,
// and to declare client capabilities on a session that callers share: a server
// cannot ask the worker for sampling, roots or input. Where it may ask its callers,
// each has a session of its own (see [Own]).
//
// It is one package because a session is one state machine: how it starts, reads,
// cancels, is checked and replaced all work on the same lock and the same table of calls.
package session
