// Package bench loads tool calls onto things that can run them and measures
// the answers: rate, latency and the CPU time of every process that takes
// part. It stands behind `callyard bench` and `make bench`.
//
// A [Target] is one way to reach the tool "echo" of the everything server: the
// go-sdk straight over stdio, our own session the same way, Callyard in one
// process, Callyard in three, and any HTTP endpoint given by its URL. [Run] puts
// the same closed loop on each of them.
//
// It promises that what is compared is measured in turn, in one run: cells of
// one size and concurrency stand next to each other in time, the order of the
// targets rotates with each of them, and figures are medians over the rounds.
// It promises that an answer counts only when it is whole: status 200 and the
// very message of this call. The generator itself costs a few microseconds for
// each HTTP call, and its own CPU time is shown next to the others.
//
// It refuses to judge. There are no thresholds here; absolute figures belong to
// the machine and the minute, ratios within one cell are what to read. It never
// repeats a failed call, and it prints neither arguments nor results.
//
// CPU times of other processes are read on Linux only; elsewhere they are left
// out.
//
// The package is large because each way to reach a tool and each figure is a file of its
// own. They share the loop and the report, and nothing that ships links them.
package bench
