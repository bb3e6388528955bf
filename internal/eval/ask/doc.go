// Package ask asks a model the questions of a data set and keeps its answers in a file, from
// which package stage scores them.
//
// It promises that an answer is on disk before the next question of its place is asked, that
// an answer that is there is not asked for again, and that answers to different requests do
// not stand in one file: each line has the digest of its request.
package ask
