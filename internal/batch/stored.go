package batch

import "github.com/callyard/callyard/internal/store/journal"

// Aliases of stored types, for packages that show batches without importing the store.
type (
	// Manifest has the owner, state and counts of a batch.
	Manifest = journal.Manifest
	// Line is one accepted call of a batch.
	Line = journal.CallRecord
	// LineResult is the result of one call.
	LineResult = journal.ResultRecord
	// Cursor is a position in the results of a batch.
	Cursor = journal.Cursor
	// Progress is the state of a batch.
	Progress = journal.State
)

// The states of a batch.
const (
	Receiving = journal.Receiving // its calls are being received
	Sealed    = journal.Sealed    // all calls are received, and none runs yet
	Running   = journal.Running
	Canceling = journal.Canceling
	Ended     = journal.Ended
)

// Succeeded reports whether the call ended with a result of its tool.
func Succeeded(r *LineResult) bool { return r.Outcome == journal.Succeeded }

// ParseCursor parses a cursor; "" is the beginning.
func ParseCursor(text string) (Cursor, error) { return journal.ParseCursor(text) }

// After returns the cursor after a result.
func After(r *LineResult) Cursor { return journal.After(r) }
