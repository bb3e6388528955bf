package batchfile

import (
	"errors"
	"fmt"
)

// Fault says why a run cannot begin or continue. Trying again does not help until the
// cause is removed.
type Fault int

// The faults of a run.
const (
	// BadCalls: the calls cannot be read, or a line is no call.
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
	// OtherCalls: the calls are not those that the batch was made of.
	OtherCalls
	// OtherOrder: the batch was made with another [Order].
	OtherOrder
	// NoBatch: [Options.Cancel] is set, and the state names no batch.
	NoBatch
	// LinesLost: the front door stores fewer lines than it has confirmed before.
	LinesLost
)

// Error is a fault of a run. Its text is a sentence for people.
type Error struct {
	Fault Fault
	// Path is the file that the fault is about, Batch the id of the batch, "" before it
	// has one.
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

// Errors of an answer. They come after [Options.GiveUp] at the latest.
var (
	// ErrForeign: the answer is none that a front door gives.
	ErrForeign = errors.New("the answer is not that of a Callyard front door")
	// ErrIncomplete: the results ended before the batch had.
	ErrIncomplete = errors.New("the stream of results ended before the batch had ended")
)
