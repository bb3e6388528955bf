package batchfile

import (
	"errors"
	"fmt"
)

// Fault is the reason why a run cannot begin or continue. Retrying does not help until the
// cause is removed.
type Fault int

// The faults of a run.
const (
	// BadCalls: the calls cannot be read, or a line is not a call.
	BadCalls Fault = iota + 1
	// NoCalls: there are no calls.
	NoCalls
	// BadResults: the results or the state cannot be written.
	BadResults
	// BadState: the state cannot be read.
	BadState
	// InUse: another run writes to the file of results.
	InUse
	// NotEmpty: the file of results has content, but there is no state to continue from.
	NotEmpty
	// OtherCalls: the calls differ from the calls of the batch.
	OtherCalls
	// OtherOrder: the batch was created with a different [Order].
	OtherOrder
	// NoBatch: [Options.Cancel] is set, but the state names no batch.
	NoBatch
	// LinesLost: the front door stores fewer lines than it had confirmed.
	LinesLost
)

// Error is a fault of a run. Its text is a sentence for users.
type Error struct {
	Fault Fault
	// Path is the file that the fault concerns. Batch is the ID of the batch; it is ""
	// before the batch is created.
	Path, Batch string
	err         error
}

// Error returns the sentence.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

func fault(f Fault, path, format string, args ...any) *Error {
	return &Error{Fault: f, Path: path, err: fmt.Errorf(format, args...)}
}

// Errors of a response. A run retries them until [Options.GiveUp] has passed.
var (
	// ErrForeign: the response does not come from a front door.
	ErrForeign = errors.New("the answer is not that of a Callyard front door")
	// ErrIncomplete: the stream of results ended before the batch did.
	ErrIncomplete = errors.New("the stream of results ended before the batch had ended")
)
