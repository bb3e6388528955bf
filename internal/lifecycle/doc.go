// Package lifecycle starts the parts of a process in order and stops them in reverse.
//
// It owns the order, the signals, the grace period of each part, and the exit code. Every started
// part is asked to stop, once and in reverse order, however the run ends: by a signal, the end of
// the context, a part that could not start, or a part that failed while running. A part that does
// not stop within its grace period is named and abandoned. A second signal ends the run at once.
//
// The package does not restart parts and does not know what they do.
package lifecycle
