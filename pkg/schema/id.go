package schema

// Each kind of identifier has its own type, so that the compiler detects a mix-up. Their JSON
// form is a string. Convert at the edges only: where an id is read from a request, a frame, a
// file or a store, and where one becomes part of a subject, a key or a log line.

// CallID identifies one call for its whole life: "call_" and 26 characters, or a longer form for
// a durable call, which encodes the position of the call in its journal. A front door creates it
// when it admits the call; see [NewCallID]. It is unique within an installation.
type CallID string

// ApprovalID identifies the approval of a held call: "appr_" and 26 characters that are derived
// from the id of the call. A front door creates it when it holds the call. It is unique within an
// installation.
type ApprovalID string

// BatchID identifies a batch ("batch_" and 26 characters) or the journal in which a front door
// keeps single durable calls ("lane_" and 26 characters). A front door creates it; see [NewID].
// It is unique within an installation.
type BatchID string

// ServerID identifies an MCP server: 1 to 64 letters, digits, "-" and "_", not beginning with
// "-" or "_". The operator chooses it in the configuration or when adding the server. All workers
// that offer a server with the same id offer the same server.
type ServerID string

// WorkerID identifies one run of a worker process: its configured name, "_" and 26 characters.
// The process creates it at each start, so it is unique within an installation and never reused.
type WorkerID string

// TenantID identifies a group of principals that is isolated from other groups: they share no
// servers, calls, batches, approvals or sessions. The operator chooses it in the configuration, or
// the identity provider sends it in a claim of a token. It has the form of a [ServerID] and is
// unique within an installation.
//
// The empty id means [DefaultTenant]. Compare ids with [TenantID.Is].
type TenantID string

// DefaultTenant is the tenant of every principal whose credential does not set one.
const DefaultTenant TenantID = "default"

// OrDefault returns t, or [DefaultTenant] if t is empty.
func (t TenantID) OrDefault() TenantID {
	if t == "" {
		return DefaultTenant
	}
	return t
}

// Valid reports whether t is a well-formed tenant id.
func (t TenantID) Valid() bool {
	if t == "" || len(t) > 64 || t[0] == '-' || t[0] == '_' {
		return false
	}
	for i := 0; i < len(t); i++ {
		switch c := t[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// Stored returns t in its stored form, which is empty for [DefaultTenant]. Records from before
// tenants existed therefore belong to the default tenant.
func (t TenantID) Stored() TenantID {
	if t == DefaultTenant {
		return ""
	}
	return t
}

// Is reports whether t and other identify the same tenant.
func (t TenantID) Is(other TenantID) bool { return t.OrDefault() == other.OrDefault() }

// Tenants selects the tenants whose items a read of a store returns: one tenant or all. The
// zero value selects none, so that every reader has to choose explicitly.
type Tenants struct {
	of   TenantID
	kind tenantsKind
}

type tenantsKind uint8

const (
	noTenants tenantsKind = iota
	oneTenant
	allTenants
)

// OnlyTenant selects the items of one tenant. The empty id means [DefaultTenant].
func OnlyTenant(id TenantID) Tenants { return Tenants{id.Stored(), oneTenant} }

// AllTenants selects the items of all tenants. It is for operators of the installation and for
// background work of the system.
func AllTenants() Tenants { return Tenants{kind: allTenants} }

// Include reports whether the items of the tenant are selected.
func (t Tenants) Include(id TenantID) bool {
	switch t.kind {
	case allTenants:
		return true
	case oneTenant:
		return t.of.Is(id)
	case noTenants:
	}
	return false
}
