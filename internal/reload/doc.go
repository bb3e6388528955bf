// Package reload detects edits of configuration files and applies them while the process runs.
//
// It watches files by polling, which works for plain edits, for files that are renamed into place,
// and for the symbolic links that Kubernetes exchanges. A SIGHUP reloads at once. The package also
// holds the outcome of the last attempt, for health checks, metrics and the other processes of the
// fabric.
//
// A file is applied only if it was the same at two checks and did not change while it was read, so
// that half an edit is never applied. A file with faults changes nothing, is logged once, and is
// reported until it is fixed. Parts are reloaded one at a time.
//
// The package does not know the content of a file: the owner of the part reads and applies it.
package reload
