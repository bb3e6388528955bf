package schema

import "time"

// FrontDoor is the announcement that a live front door publishes each second.
type FrontDoor struct {
	ID       string    `json:"-"` // unique for each start of the process
	InForce  []InForce `json:"-"` // its effective configuration
	Version  string    `json:"version"`
	Region   string    `json:"region,omitempty"`
	Started  time.Time `json:"started"`
	Draining bool      `json:"draining,omitempty"`
	// Load is nil if the front door runs an older version that does not announce it.
	Load *Load `json:"load,omitempty"`
	// Tenants holds the number of calls in flight at this front door, by tenant. It includes
	// only tenants that have limits and calls in flight.
	Tenants map[TenantID]int `json:"tenants,omitempty"`
	// Signer is the id of the key with which it signs warrants, or NoSigner. It is "" if the front door
	// runs an older version that does not announce it.
	Signer string `json:"signer,omitempty"`
}

// NoSigner is announced in place of the id of a key by front doors and approvers that have no key to
// sign warrants with.
const NoSigner = "none"

// Load counts the calls of one front door since it started. The counts equal those of its
// metrics callyard_calls_total and callyard_call_seconds.
type Load struct {
	Ended      uint64 `json:"ended"`                 // calls that ended, with any outcome
	Failed     uint64 `json:"failed,omitempty"`      // subset of Ended: ended with an error of Callyard or a refusal
	ToolErrors uint64 `json:"tool_errors,omitempty"` // subset of Ended: the result reports an error of the tool
	InFlight   int    `json:"in_flight,omitempty"`   // calls that were admitted and have not ended
	Waiting    int    `json:"waiting,omitempty"`     // subset of InFlight: waiting for a free slot
	// Times is a histogram of the time from admission to the end of a call, in ascending order.
	Times []CallTimes `json:"times,omitempty"`
}

// CallTimes is one bucket of a histogram. It counts the calls that took at most AtMost seconds
// and longer than AtMost of the previous bucket.
type CallTimes struct {
	AtMost float64 `json:"at_most,omitempty"` // 0 means no upper bound
	Calls  uint64  `json:"calls,omitempty"`
}
