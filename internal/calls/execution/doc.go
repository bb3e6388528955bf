// Package execution runs calls: it is the chain of layers between admission and the
// router, assembled in one place, [New].
//
// A layer wraps a [Runner] and is one itself. Each does one thing: it holds the call to a
// quota, answers it from the cache, keeps its execution record, or counts it. The
// innermost Runner is the router. A layer that is not configured is not in the chain.
//
// There are three ways in. [Chain.Submit] admits a call and runs it at once, or returns
// what becomes of it instead. [Chain.Run] runs a call that was admitted before. [Chain.Start]
// is Run for one of many calls, without a goroutine for each.
//
// It promises that a call is admitted before it runs, that it is counted and recorded once
// for each run, and that its bytes are not changed. It refuses to decide: what a call may
// do is the verdict of admission, which travels with it.
package execution
