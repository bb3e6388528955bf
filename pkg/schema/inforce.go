package schema

import "time"

// The parts of a configuration that a running process reloads.
const (
	PartPolicy  = "policy"
	PartServers = "servers"
	PartKeys    = "keys"
)

// The parts of a configuration that only a comparison of processes reports: the keys of warrants that
// workers trust, by the kind of decision. No process reloads them.
const (
	PartPeopleKeys = "people_keys"
	PartCallerKeys = "caller_keys"
)

// InForce is the effective version of one part of the configuration of a process, and the
// outcome of its last reload.
type InForce struct {
	Part string `json:"part"` // PartPolicy, PartServers or PartKeys
	// Version identifies the content: equal files have equal versions.
	Version string    `json:"version"`
	Since   time.Time `json:"since"` // when this version became effective
	// Tried is the time when the file was last read. Error is the reason why its current
	// content is not, or not completely, effective. It is "" if the content is effective.
	Tried time.Time `json:"tried"`
	Error string    `json:"error,omitempty"`
	// Entries maps the ids of the servers in the servers file to their versions.
	Entries map[string]string `json:"entries,omitempty"`
}
