// Package stage keeps an evaluation in files: samples.jsonl and responses.jsonl become
// scores.jsonl. Each line of a computed file carries the digest of its inputs, and a line whose
// inputs did not change is kept as it is.
//
// It promises that a file is complete or as before, and that scoring again without a change
// computes and writes nothing. It asks no model.
package stage
