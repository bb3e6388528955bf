package batch

import "github.com/callyard/callyard/internal/store/journal"

// What is stored of a batch, for those who show it: they need not know the store.
type (
	// Manifest says whose a batch is, how far it has come and what it counts.
	Manifest = journal.Manifest
	// Line is one call of a batch as it was accepted.
	Line = journal.CallRecord
	// LineResult is how one call ended.
	LineResult = journal.ResultRecord
	// Cursor is a place in the results of a batch.
	Cursor = journal.Cursor
	// Progress is how far a batch has come.
	Progress = journal.State
)

// How far a batch can have come.
const (
	Receiving = journal.Receiving // its calls are coming in
	Sealed    = journal.Sealed    // they are all there, and nothing runs yet
	Running   = journal.Running
	Canceling = journal.Canceling
	Ended     = journal.Ended
)

// Succeeded reports whether the call ended with a result of its tool.
func Succeeded(r *LineResult) bool { return r.Outcome == journal.Succeeded }

// ParseCursor reads a cursor; "" is the beginning.
func ParseCursor(text string) (Cursor, error) { return journal.ParseCursor(text) }

// After returns the cursor behind a result.
func After(r *LineResult) Cursor { return journal.After(r) }
