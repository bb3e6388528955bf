package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Kind identifies a kind of failure. It is the stable part of an [Error]: the front door maps
// each kind to one HTTP status and one problem type, the MCP endpoint maps it to one MCP
// error, and the bus transmits it unchanged.
type Kind string

const (
	KindInvalidRequest   Kind = "invalid-request"        // the request cannot be read
	KindUnauthenticated  Kind = "unauthenticated"        // no credential, or an unknown one
	KindForbidden        Kind = "forbidden"              // known, but not allowed
	KindDisabled         Kind = "tool-disabled"          // an operator disabled the tool
	KindNotFound         Kind = "not-found"              // no such server, tool, call
	KindConflict         Kind = "conflict"               // it exists already, or is in another state
	KindExpired          Kind = "expired"                // it has expired
	KindKeyReused        Kind = "idempotency-key-reused" // the key was used for a different request
	KindTooLarge         Kind = "too-large"              // the request exceeds a limit
	KindInvalidArguments Kind = "invalid-arguments"      // the arguments do not match the tool's schema
	KindQuota            Kind = "quota-exceeded"         // a limit of the caller is reached
	KindUnavailable      Kind = "unavailable"            // no capacity or no live worker; nothing started
	KindServerFailed     Kind = "server-failed"          // the MCP server cannot be reached; the call did not start
	KindProtocol         Kind = "tool-protocol-error"    // the MCP server answered with a JSON-RPC error
	KindResultTooLarge   Kind = "result-too-large"       // the result exceeds the limit
	KindInputRequired    Kind = "input-required"         // the tool asks for input, which this API cannot provide
	KindConnectRequired  Kind = "connect-required"       // the caller must connect to the server first; nothing started
	KindOutcomeUnknown   Kind = "outcome-unknown"        // the call was sent and no answer was received
	KindCanceled         Kind = "canceled"               // canceled before it was sent; it never ran
	KindInternal         Kind = "internal"               // an internal error of Callyard
)

// Error is a failure as reported to callers. Detail is a full sentence that describes the
// error and, if there is one, the remedy. It never contains argument values.
type Error struct {
	Kind   Kind   `json:"kind" doc:"The kind of the error: the last segment of the type of its problem document."`
	Detail string `json:"detail" doc:"The fault and the fix. It never contains an argument."`
	// CallID is the call that failed. It is empty if the call has no id yet.
	CallID CallID `json:"call_id,omitempty" doc:"The call that failed, if it had an id."`
	// Retryable means that the same request can be sent again without a second side effect,
	// because nothing started or because the tool is safe to repeat.
	Retryable bool `json:"retryable,omitempty" doc:"Whether the same request can be sent again without a second side effect; absent means false."`
	// RetryAfter is the time to wait before a retry. Zero means unknown.
	RetryAfter time.Duration `json:"retry_after_ns,omitempty" doc:"The number of nanoseconds to wait before a retry; absent if it is not known."`
	// CancelRequested is set with [KindOutcomeUnknown] if cancellation of the call was
	// requested while it ran. [KindCanceled] is for calls that never ran.
	CancelRequested bool `json:"cancel_requested,omitempty" doc:"Whether the call was asked to stop while it ran; absent means false. It may have done part of its work."`
	// TimedOut is set with [KindOutcomeUnknown] if the MCP server did not answer within the
	// timeout of the call and its session continues.
	TimedOut bool `json:"timed_out,omitempty" doc:"Whether the MCP server did not answer within the timeout of the call; absent means false."`
	// RateLimited is set with [KindServerFailed] if the server rejected the call because of
	// its rate limit. RetryAfter then holds the delay that the server requested.
	RateLimited bool `json:"rate_limited,omitempty" doc:"Whether the server rejected the call because of its rate limit; absent means false."`
	// Attempts is the number of times that the call was sent if a [Retry] applied to it, and
	// zero otherwise. It is not sent over the bus.
	Attempts int `json:"-"`
	// ConnectURL is the page on which a person connects to the server, for
	// [KindConnectRequired].
	ConnectURL string `json:"connect_url,omitempty" doc:"The page on which the person behind the call connects to the server, if it requires a credential of that person."`
	// Faults lists every fault in the arguments.
	Faults []Fault `json:"faults,omitempty" doc:"Each fault of the arguments; absent if there is none."`
	// RPC is the JSON-RPC error of the MCP server, for [KindProtocol].
	RPC *RPCError `json:"rpc,omitempty" doc:"The JSON-RPC error of the MCP server; absent for other errors."`

	cause error
}

// Fault is one error in the arguments of a call.
type Fault struct {
	// Pointer is a JSON pointer (RFC 6901) into the arguments. "" means all of them.
	Pointer string `json:"pointer" doc:"A JSON pointer (RFC 6901) into the arguments; empty means all of them."`
	// Message describes the expected value. It never contains the actual value.
	Message string `json:"message" doc:"The value that was expected. It never contains the actual value."`
}

// RPCError is a JSON-RPC error as the MCP server sent it.
type RPCError struct {
	Code    int64           `json:"code" doc:"The code of the JSON-RPC error."`
	Message string          `json:"message" doc:"The message of the JSON-RPC error, as the MCP server sent it."`
	Data    json.RawMessage `json:"data,omitempty" doc:"Any JSON value, as the MCP server sent it."`
}

// Errorf returns an *Error of the kind. %w wraps a cause, which is not part of the JSON form.
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

// Unwrap returns the cause, if any. The cause is not sent over the bus.
func (e *Error) Unwrap() error { return e.cause }

// WithCall returns a copy of e with the call id set.
func (e *Error) WithCall(id CallID) *Error {
	c := *e
	c.CallID = id
	return &c
}

// AsError returns err as an *Error. An error of any other type becomes [KindInternal] with a
// fixed detail, because its text is for the log and not for callers.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: KindInternal, Detail: "Callyard failed on this call; the front door's log has the cause.", cause: err}
}

// KindOf returns the kind of err, [KindInternal] for errors of other types, and "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	return AsError(err).Kind
}
