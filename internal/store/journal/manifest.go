package journal

import (
	"maps"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Kind is the purpose of a journal.
type Kind string

const (
	Batch Kind = "batch" // many calls with one id
	Lane  Kind = "lane"  // the single durable calls of one front door
)

// State is the state of a journal.
type State string

const (
	Receiving State = "receiving" // it accepts calls
	Sealed    State = "sealed"    // all calls are stored, and no owner has started to finish it
	Running   State = "running"   // all calls are stored, and an owner runs them
	Canceling State = "canceling" // no new calls start; running ones may finish
	Ended     State = "ended"     // every call has a result
)

// Ending is the reason why a journal ended.
type Ending string

const (
	Completed      Ending = "completed"
	EndedByCancel  Ending = "canceled"
	EndedByExpiry  Ending = "expired"
	EndedByFailure Ending = "failed"
)

// Counts holds the number of calls by outcome.
type Counts struct {
	Succeeded uint64 `json:"succeeded"`
	Failed    uint64 `json:"failed"`
	Denied    uint64 `json:"denied"`
	Expired   uint64 `json:"expired"`
	Canceled  uint64 `json:"canceled"`
	Unknown   uint64 `json:"unknown"`
	Dead      uint64 `json:"dead"`
	// ToolErrors is the number of Succeeded calls that returned a tool error.
	ToolErrors uint64 `json:"tool_errors"`
}

// Total returns the number of ended calls.
func (c Counts) Total() uint64 {
	return c.Succeeded + c.Failed + c.Denied + c.Expired + c.Canceled + c.Unknown + c.Dead
}

// Manifest is the metadata of a journal. Fields up to Labels, and LaneTenant, are set at its creation and
// never change. The others are changed by [Store.Change] and by the package.
type Manifest struct {
	// ID is a plain token of up to 64 characters. [Store.Create] generates one if it is empty.
	ID        schema.BatchID   `json:"id"`
	Kind      Kind             `json:"kind"`
	Principal schema.Principal `json:"principal"`
	// Priority and Weight are for the runner's scheduling.
	Priority int `json:"priority,omitempty"`
	Weight   int `json:"weight,omitempty"`
	// Expires is the time at which calls expire that were not sent. It is required, and must be
	// early enough that no result expires before it; see [Store.MaxLife].
	Expires     time.Time `json:"expires"`
	CallbackURL string    `json:"callback_url,omitempty"`
	// Fingerprint is the digest of the request that created it, Key the hash of its idempotency
	// key.
	Fingerprint string `json:"fingerprint,omitempty"`
	Key         string `json:"key,omitempty"`
	// Lines is the digest of the lines of a request with a key, set when it seals the journal.
	Lines   string            `json:"lines,omitempty"`
	Created time.Time         `json:"created"`
	Labels  map[string]string `json:"labels,omitempty"`
	// Trace is the W3C trace context of the request that created it, if tracing is enabled.
	Trace string `json:"trace,omitempty"`
	// LaneTenant is the tenant of all calls of a lane, by [schema.TenantID.OrDefault]. It is
	// empty if several tenants share the lane.
	LaneTenant schema.TenantID `json:"lane_tenant,omitempty"`

	State   State     `json:"state"`
	Ending  Ending    `json:"ending,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Sealed  time.Time `json:"sealed,omitzero"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// Calls is the number of accepted calls. It is exact from Sealed on; before that it is the
	// number at the last write of this manifest.
	Calls uint64 `json:"calls"`
	// Refused is the number of lines refused at intake, as counted by the writer.
	Refused uint64 `json:"refused,omitempty"`
	// Counts is updated whenever the owner writes the manifest.
	Counts Counts `json:"counts"`
	// Missing are servers of waiting calls that no worker has announced, as of that write.
	Missing []schema.ServerID `json:"missing,omitempty"`
	// Owner and Epoch are those of the last claim.
	Owner string `json:"owner,omitempty"`
	Epoch uint64 `json:"epoch,omitempty"`
	// Purged is set before the calls are deleted. The results remain. CallsDeleted is set after they
	// have been deleted.
	Purged       bool `json:"purged,omitempty"`
	CallsDeleted bool `json:"calls_deleted,omitempty"`
	// Forgotten is set after the retention period of its tenant: calls and results are no longer
	// available. Emptied is set after they have been deleted.
	Forgotten bool `json:"forgotten,omitempty"`
	Emptied   bool `json:"emptied,omitempty"`
	// Deleted is set if everything was deleted. Only watchers see it.
	Deleted bool `json:"deleted,omitempty"`
	// Secret is a copy of [Store.Secret]. Each manifest repeats it, so that the loss of one
	// message does not lose it.
	Secret []byte `json:"secret,omitempty"`
	// Write identifies one write, so that a writer can recognize it.
	Write string `json:"write,omitempty"`
}

// of reports whether these tenants may see the journal. The manifest of a lane belongs to no tenant;
// each of its records belongs to the tenant that requested the call.
func (m *Manifest) of(tenants schema.Tenants) bool {
	if m.Kind == Lane {
		return tenants != schema.Tenants{}
	}
	return tenants.Include(m.Principal.Tenant)
}

// withinOf returns the tenants whose records in the journal are visible to these tenants.
func (m *Manifest) withinOf(tenants schema.Tenants) schema.Tenants {
	if m.Kind == Lane {
		return tenants
	}
	return schema.AllTenants() // all records belong to the tenant of the journal
}

// End sets the state of a manifest to ended.
func (m *Manifest) End(e Ending, reason string) {
	m.State, m.Ending, m.Reason, m.Ended = Ended, e, reason, time.Now().UTC()
	m.Missing = nil
}

// Clone returns a deep copy.
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
	// Limit is the maximum length of a page. It defaults to 100 and is at most 1,000.
	Limit int
}
