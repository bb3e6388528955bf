// Package lifecycle starts the parts of a process in order and stops them in
// reverse.
//
// It owns the order, the signals, the time that each part gets to stop, and the
// exit code. It promises that everything that was started is asked to stop, once
// and in reverse order, however the run ends: by a signal, by the end of the
// context, by a part that could not start, or by a part that failed while
// running; and that a part which does not stop in its grace is named and left
// behind rather than waited for. A second signal ends the run at once.
//
// It refuses to restart parts and to know what they do.
package lifecycle
