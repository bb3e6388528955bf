// Package stats computes the statistics of evaluations: bootstrap intervals of means, tests for the
// difference of two runs on the same samples, and pass@k.
//
// The same input and seed give the same bytes on any number of processors: draws are made in blocks of
// fixed size, and each block has its own random generator (PCG), whose seed is derived from the
// caller's seed and the number of the block.
//
// The package knows nothing about tools or files. All functions are pure and safe for concurrent use.
package stats
