// Package bench loads tool calls onto targets and measures the responses: rate, latency
// and the CPU time of every process involved. `callyard bench` and `make bench` use it.
//
// A [Target] is one way to reach the tool "echo" of the everything server: the
// go-sdk directly over stdio, our own session over stdio, Callyard in one
// process, Callyard in three, and any HTTP endpoint given by its URL. [Run] applies
// the same closed loop to each of them.
//
// It promises that compared targets are measured in turn, in one run: cells of
// one size and concurrency are measured one after the other, the order of the
// targets rotates with each of them, and figures are medians over the rounds.
// It promises that an answer counts only if it is complete: status 200 and exactly
// the message of this call. The generator itself costs a few microseconds for
// each HTTP call, and its own CPU time is shown next to the others.
//
// It refuses to judge. There are no thresholds here: absolute figures depend on the
// machine and the time, so compare ratios within one cell. It never repeats a failed
// call, and prints neither arguments nor results.
//
// CPU times of other processes are available on Linux only and are otherwise omitted.
//
// The package is large because each way to reach a tool and each figure is a separate file.
// They share the loop and the report, and no shipped program links them.
package bench
