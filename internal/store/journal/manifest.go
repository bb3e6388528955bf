package journal

import (
	"maps"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Kind says what a journal is for.
type Kind string

const (
	Batch Kind = "batch" // many calls under one handle
	Lane  Kind = "lane"  // the single durable calls of one front door
)

// State says how far a journal has come.
type State string

const (
	Receiving State = "receiving" // calls are taken
	Sealed    State = "sealed"    // all calls are there, and no owner has begun to finish it
	Running   State = "running"   // all calls are there, and an owner runs them
	Canceling State = "canceling" // nothing new starts; what runs may finish
	Ended     State = "ended"     // every call has a result
)

// Ending says why a journal ended.
type Ending string

const (
	Completed      Ending = "completed"
	EndedByCancel  Ending = "canceled"
	EndedByExpiry  Ending = "expired"
	EndedByFailure Ending = "failed"
)

// Counts is how many calls ended in each way.
type Counts struct {
	Succeeded uint64 `json:"succeeded"`
	Failed    uint64 `json:"failed"`
	Denied    uint64 `json:"denied"`
	Expired   uint64 `json:"expired"`
	Canceled  uint64 `json:"canceled"`
	Unknown   uint64 `json:"unknown"`
	Dead      uint64 `json:"dead"`
	// ToolErrors is the number of Succeeded that answered with an error of the tool's own.
	ToolErrors uint64 `json:"tool_errors"`
}

// Total is how many calls ended.
func (c Counts) Total() uint64 {
	return c.Succeeded + c.Failed + c.Denied + c.Expired + c.Canceled + c.Unknown + c.Dead
}

// Manifest is a journal's record of itself. Fields up to Labels are set when it
// is made and stay, as does LaneTenant; the others are changed by [Store.Change] and by the package.
type Manifest struct {
	// ID is a plain token of up to 64 characters; [Store.Create] makes one when
	// it is empty.
	ID        schema.BatchID   `json:"id"`
	Kind      Kind             `json:"kind"`
	Principal schema.Principal `json:"principal"`
	// Priority and Weight are for the runner's scheduling.
	Priority int `json:"priority,omitempty"`
	Weight   int `json:"weight,omitempty"`
	// Expires is when calls that have not left expire. It must be set, and lie so
	// near that no result is forgotten before; see [Store.MaxLife].
	Expires     time.Time `json:"expires"`
	CallbackURL string    `json:"callback_url,omitempty"`
	// Fingerprint is the digest of the request that made it, Key the hash of its
	// idempotency key.
	Fingerprint string `json:"fingerprint,omitempty"`
	Key         string `json:"key,omitempty"`
	// Lines is the digest of the lines of a request with a key, once it has sealed the journal.
	Lines   string            `json:"lines,omitempty"`
	Created time.Time         `json:"created"`
	Labels  map[string]string `json:"labels,omitempty"`
	// Trace is the W3C trace context of the request that made it, where there are
	// traces.
	Trace string `json:"trace,omitempty"`
	// LaneTenant is the tenant of all calls of a lane, by [schema.TenantID.OrDefault]; empty
	// where tenants share it.
	LaneTenant schema.TenantID `json:"lane_tenant,omitempty"`

	State   State     `json:"state"`
	Ending  Ending    `json:"ending,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Sealed  time.Time `json:"sealed,omitzero"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// Calls is how many calls were accepted: for sure from Sealed on, before as
	// of the last write of this manifest.
	Calls uint64 `json:"calls"`
	// Refused is how many lines were refused at intake, as the writer counted.
	Refused uint64 `json:"refused,omitempty"`
	// Counts are as of the last write of this manifest by the owner.
	Counts Counts `json:"counts"`
	// Missing are servers of waiting calls that no worker has announced, as of that write.
	Missing []schema.ServerID `json:"missing,omitempty"`
	// Owner and Epoch are of the last claim.
	Owner string `json:"owner,omitempty"`
	Epoch uint64 `json:"epoch,omitempty"`
	// Purged says that the calls are not kept any more; results still are.
	Purged bool `json:"purged,omitempty"`
	// Forgotten says that the retention of its tenant has ended: neither calls nor results are
	// kept any more. Emptied says that they have been deleted.
	Forgotten bool `json:"forgotten,omitempty"`
	Emptied   bool `json:"emptied,omitempty"`
	// Deleted says that nothing is kept any more. It is seen by watchers only.
	Deleted bool `json:"deleted,omitempty"`
	// Secret is what [Store.Secret] returns. Each manifest repeats it, so that it is
	// not lost with one message.
	Secret []byte `json:"secret,omitempty"`
	// Write names one write, so that a writer can tell that it was its own.
	Write string `json:"write,omitempty"`
}

// of reports whether those who see these tenants see the journal. The manifest of a lane is
// nobody's, and its records are each of the tenant that asked for the call.
func (m *Manifest) of(tenants schema.Tenants) bool {
	if m.Kind == Lane {
		return tenants != schema.Tenants{}
	}
	return tenants.Include(m.Principal.Tenant)
}

// withinOf returns the tenants whose records in the journal those who see these tenants see.
func (m *Manifest) withinOf(tenants schema.Tenants) schema.Tenants {
	if m.Kind == Lane {
		return tenants
	}
	return schema.AllTenants() // they are all of the journal's
}

// End marks a manifest as ended.
func (m *Manifest) End(e Ending, reason string) {
	m.State, m.Ending, m.Reason, m.Ended = Ended, e, reason, time.Now().UTC()
	m.Missing = nil
}

// Clone returns a copy that shares nothing.
func (m *Manifest) Clone() *Manifest {
	c := *m
	c.Principal.Groups = slices.Clone(m.Principal.Groups)
	c.Labels = maps.Clone(m.Labels)
	c.Secret = slices.Clone(m.Secret)
	c.Missing = slices.Clone(m.Missing)
	return &c
}

// Filter chooses journals; what is empty chooses all.
type Filter struct {
	Kind      Kind
	States    []State
	Principal string
	// Limit is the most that one page holds: 100 when 0, never over 1,000.
	Limit int
}
