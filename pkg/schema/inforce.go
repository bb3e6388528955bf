package schema

import "time"

// The parts of a configuration that are read again while a process runs.
const (
	PartPolicy  = "policy"
	PartServers = "servers"
	PartKeys    = "keys"
)

// InForce says which version of a part of its configuration a process goes by, and how
// its last reload went.
type InForce struct {
	Part string `json:"part"` // PartPolicy, PartServers or PartKeys
	// Version identifies the content: equal files have equal versions.
	Version string    `json:"version"`
	Since   time.Time `json:"since"` // when that version came into force
	// Tried is when the file was last read, and Error why what it holds now is not, or
	// not wholly, in force; "" where it is.
	Tried time.Time `json:"tried"`
	Error string    `json:"error,omitempty"`
	// Entries are the versions of the servers of the servers file, by their ids.
	Entries map[string]string `json:"entries,omitempty"`
}
