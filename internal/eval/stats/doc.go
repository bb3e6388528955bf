// Package stats computes the statistics of evaluations: bootstrap intervals of means, tests
// for the difference of two runs on the same samples, and pass@k.
//
// It promises the same bytes for the same input and seed, on any number of processors: draws are
// made in blocks of fixed size, and each block has a random generator (PCG) of its own whose
// seed is derived from the seed of the caller and the number of the block.
//
// It knows nothing of tools or files. All functions are pure and safe for concurrent use.
package stats
