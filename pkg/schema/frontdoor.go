package schema

import "time"

// FrontDoor is a live front door as it announces itself each second.
type FrontDoor struct {
	ID       string    `json:"-"` // of this run of the process
	InForce  []InForce `json:"-"` // the configuration that it goes by
	Version  string    `json:"version"`
	Region   string    `json:"region,omitempty"`
	Started  time.Time `json:"started"`
	Draining bool      `json:"draining,omitempty"`
	// Load is nil for a front door of an older version, which does not announce it.
	Load *Load `json:"load,omitempty"`
	// Tenants are the calls in flight at the front door of each tenant with limits; those without
	// calls are left out.
	Tenants map[TenantID]int `json:"tenants,omitempty"`
}

// Load counts the calls of one front door since it started. The counts equal those of its
// metrics callyard_calls_total and callyard_call_seconds.
type Load struct {
	Ended      uint64 `json:"ended"`                 // calls that ended, whatever the outcome
	Failed     uint64 `json:"failed,omitempty"`      // of those, the ones that ended with an error of Callyard or a refusal
	ToolErrors uint64 `json:"tool_errors,omitempty"` // of those, the ones with a result that reports an error
	InFlight   int    `json:"in_flight,omitempty"`   // calls that were admitted and have not ended
	Waiting    int    `json:"waiting,omitempty"`     // of those, the ones that wait for a free slot
	// Times counts the calls that ended by the time from admission to the end, in ascending order.
	Times []CallTimes `json:"times,omitempty"`
}

// CallTimes counts the calls that took at most AtMost seconds, and longer than the AtMost of the
// element before it.
type CallTimes struct {
	AtMost float64 `json:"at_most,omitempty"` // 0: there is no upper bound
	Calls  uint64  `json:"calls,omitempty"`
}
