// Package stage keeps an evaluation in files: samples.jsonl and responses.jsonl become scores.jsonl.
// Each line of a computed file has the digest of its inputs. A line whose inputs did not change is
// kept unchanged.
//
// Files are replaced atomically. Scoring again without a change computes and writes nothing. The
// package sends no requests to models.
package stage
