// Package reload notices that a file of the configuration was edited and has it put in
// force while the process runs.
//
// It owns the looking: by polling, which works for plain edits, for files that are
// renamed into place and for the symbolic links that Kubernetes exchanges, and at once
// when it is asked to (SIGHUP). It owns what is known of the last attempt, for health
// checks, metrics and the other processes of the fabric.
//
// It promises that a file is read only after it was the same at two looks and did not
// change while it was read, so that half an edit is never taken; that a file with faults
// changes nothing, is logged once and stays visible until it is repaired; and that one
// part is taken at a time.
//
// It refuses to know what is in a file: whoever owns the part reads and applies it.
package reload
