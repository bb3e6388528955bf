package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Kind names a failure. It is the stable part of an [Error]: the front door maps
// each kind to one HTTP status and one problem type, the MCP endpoint to one MCP
// error, and a kind crosses the bus intact.
type Kind string

const (
	KindInvalidRequest   Kind = "invalid-request"        // the request cannot be read
	KindUnauthenticated  Kind = "unauthenticated"        // no credential, or an unknown one
	KindForbidden        Kind = "forbidden"              // known, but not allowed
	KindDisabled         Kind = "tool-disabled"          // an operator switched the tool off
	KindNotFound         Kind = "not-found"              // no such server, tool, call
	KindConflict         Kind = "conflict"               // it exists already, or is in another state
	KindExpired          Kind = "expired"                // its time has ended
	KindKeyReused        Kind = "idempotency-key-reused" // the key stands for another request
	KindTooLarge         Kind = "too-large"              // the request is over a limit
	KindInvalidArguments Kind = "invalid-arguments"      // arguments against the tool's schema
	KindQuota            Kind = "quota-exceeded"         // the caller's own limit
	KindUnavailable      Kind = "unavailable"            // our capacity, or no live worker; nothing started
	KindServerFailed     Kind = "server-failed"          // the MCP server cannot be reached; the call did not start
	KindProtocol         Kind = "tool-protocol-error"    // the MCP server answered with a JSON-RPC error
	KindResultTooLarge   Kind = "result-too-large"       // the tool answered more than the limit
	KindInputRequired    Kind = "input-required"         // the tool asks for input that this way of calling cannot give
	KindConnectRequired  Kind = "connect-required"       // the caller must connect to the server first; nothing started
	KindOutcomeUnknown   Kind = "outcome-unknown"        // the call left and no answer was received
	KindCanceled         Kind = "canceled"               // canceled before it was sent: it never ran
	KindInternal         Kind = "internal"               // a fault of ours
)

// Error is a failure as callers see it. Detail is a full sentence that names the
// fault and, where there is one, the remedy; it never holds argument values.
type Error struct {
	Kind   Kind   `json:"kind"`
	Detail string `json:"detail"`
	// CallID is the call that failed, once it has an id.
	CallID CallID `json:"call_id,omitempty"`
	// Retryable says that the same request may be sent again without a second
	// side effect: nothing started, or the tool is safe to repeat.
	Retryable bool `json:"retryable,omitempty"`
	// RetryAfter is how long to wait first; zero says nothing.
	RetryAfter time.Duration `json:"retry_after_ns,omitempty"`
	// CancelRequested says, with [KindOutcomeUnknown], that the call was asked to stop
	// while it ran. [KindCanceled] is for calls that never ran.
	CancelRequested bool `json:"cancel_requested,omitempty"`
	// TimedOut says, with [KindOutcomeUnknown], that the MCP server gave no answer within the
	// time of the call, and that its session continues.
	TimedOut bool `json:"timed_out,omitempty"`
	// RateLimited says, with [KindServerFailed], that the server refused the call because it
	// gets too many; RetryAfter is what it asked for.
	RateLimited bool `json:"rate_limited,omitempty"`
	// Attempts is the number of times that the call was sent where a [Retry] counted for it;
	// else zero. It does not travel.
	Attempts int `json:"-"`
	// ConnectURL is where a person connects, with [KindConnectRequired].
	ConnectURL string `json:"connect_url,omitempty"`
	// Faults lists each fault of the arguments.
	Faults []Fault `json:"faults,omitempty"`
	// RPC is the JSON-RPC error of the MCP server, for [KindProtocol].
	RPC *RPCError `json:"rpc,omitempty"`

	cause error
}

// Fault is one thing wrong with the arguments of a call.
type Fault struct {
	// Pointer is a JSON pointer (RFC 6901) into the arguments; "" is the whole.
	Pointer string `json:"pointer"`
	// Message says what was expected there. It never repeats the value.
	Message string `json:"message"`
}

// RPCError is a JSON-RPC error as the MCP server sent it.
type RPCError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Errorf returns an *Error of the kind; %w wraps a cause, which stays out of the JSON form.
func Errorf(kind Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Detail: err.Error(), cause: errors.Unwrap(err)}
}

// RetryableAfter marks e as retryable, after that time at the earliest if it is not zero, and
// returns it.
func (e *Error) RetryableAfter(wait time.Duration) *Error {
	e.Retryable, e.RetryAfter = true, wait
	return e
}

// Error returns the detail.
func (e *Error) Error() string { return e.Detail }

// Unwrap returns the cause on this side of the bus, if any.
func (e *Error) Unwrap() error { return e.cause }

// WithCall returns a copy of e that names the call.
func (e *Error) WithCall(id CallID) *Error {
	c := *e
	c.CallID = id
	return &c
}

// AsError returns err as an *Error. What is not one becomes [KindInternal] with
// a fixed sentence: the cause is for the log, not for callers.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: KindInternal, Detail: "Callyard failed on this call; the front door's log has the cause.", cause: err}
}

// KindOf returns the kind of err, [KindInternal] for errors of other types and
// "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	return AsError(err).Kind
}
