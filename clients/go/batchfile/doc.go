// Package batchfile runs the calls of a file as one batch and writes their results to
// another file. A run that is interrupted at any point, by a signal, a crash or a power
// cut, is continued by the next run with the same options: no call is sent twice, and
// no result is missing or written twice.
//
// Each line of the calls is a [callyard.BatchCall] in JSON; each line of the results is
// a [callyard.BatchResult], byte for byte as the front door sent it. Next to the results
// the package keeps a state file, named like the results with ".state" appended. The
// results are synced to the disk before the state refers to them.
//
// It promises that nothing is sent while a line of the file is no call (of a pipe: the
// first line), and that a batch is never continued with another input. It refuses to
// judge results: a call that failed is a line like any other, and counted in
// [Progress].
//
// It is a package of its own because it uses the file system: on Linux, macOS and the
// BSDs it locks the file of results, and a second run with it gets [InUse]. Elsewhere
// nothing is locked, and two runs with the same file damage it.
package batchfile
