// Package ask sends the questions of a data set to a model and stores its answers in a file, from
// which package stage scores them.
//
// An answer is on disk before the next question of the same slot is sent. An existing answer is not
// requested again. Answers to different requests are never mixed in one file, because each line has
// the digest of its request.
package ask
