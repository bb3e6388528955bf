// Package batchfile runs the calls of a file as one batch and writes their results to
// another file. If a run is interrupted at any point, by a signal, a crash or a power
// failure, the next run with the same options continues it: no call is sent twice, and
// no result is missing or duplicated.
//
// Each line of the calls is a [callyard.BatchCall] in JSON. Each line of the results is
// a [callyard.BatchResult], byte for byte as the front door sent it. The package keeps a
// state file next to the results; its name is that of the results with ".state"
// appended. The results are synced to disk before the state refers to them.
//
// The package promises that nothing is sent if a line of the file is not a call (for a
// pipe, only the first line is checked), and that a batch is never continued with a different
// input. It refuses to judge results: a failed call is a line like any other, and is counted in
// [Progress].
//
// It is a package of its own because it uses the file system. On Linux, macOS and the
// BSDs it locks the results file, and a second run with the same file fails with [InUse].
// Other systems have no lock, and two runs with the same file corrupt it.
package batchfile
