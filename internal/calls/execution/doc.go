// Package execution runs calls: it is the chain of layers between admission and the router. [New]
// builds it in one place.
//
// A layer wraps a [Runner] and is one itself. Each does one thing: it enforces a quota, answers
// from the cache, writes the execution record, or counts the call. The innermost Runner is the
// router. A layer that is not configured is not in the chain.
//
// There are three entry points. [Chain.Submit] admits a call and runs it immediately, or returns
// the verdict on a call that must be held or stored. [Chain.Run] runs a call that was admitted
// earlier. [Chain.Start] is the asynchronous form of Run for bulk calls, without a goroutine per call.
//
// A call is admitted before it runs, is counted and recorded once per run, and its bytes are not
// changed. The package makes no policy decisions: they are in the admission verdict, which travels
// with the call.
package execution
