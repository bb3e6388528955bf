package schema

// Identifiers have types of their own, so that one does not stand where another belongs.
// Their JSON form is a string. Convert at the edges only: where an id is read from a request,
// a frame, a file or a store, and where one becomes part of a subject, a key or a log line.

// CallID names one call for its whole life: "call_" and 26 characters, or a longer form for
// a durable call, which says where in its journal the call stands. Front doors make it when
// they admit the call; see [NewCallID]. It is unique among all calls of an installation.
type CallID string

// ApprovalID names the approval of a held call: "appr_" and 26 characters that are made from
// the id of its call. A front door makes it when it holds the call. It is unique in an
// installation.
type ApprovalID string

// BatchID names a batch, "batch_" and 26 characters, or the journal in which a front door
// keeps single durable calls, "lane_" and 26 characters. Front doors make it; see [NewID]. It
// is unique in an installation.
type BatchID string

// ServerID names an MCP server: 1 to 64 letters, digits, "-" and "_", which do not begin with
// "-" or "_". The operator chooses it in the configuration or when the server is added. Workers
// that offer a server with the same id offer the same server.
type ServerID string

// WorkerID names one run of a worker process: its configured name, "_" and 26 characters. The
// process makes it when it starts, so it is unique in an installation and is never used again.
type WorkerID string

// TenantID names a group of principals that share nothing with other groups: neither servers
// nor calls, batches, approvals or sessions. The operator chooses it in the configuration, or
// the identity provider in a claim of a token. It has the form of a [ServerID] and is unique
// in an installation.
//
// The empty id means [DefaultTenant]. Compare ids with [TenantID.Is].
type TenantID string

// DefaultTenant is the tenant of every principal whose credential names none.
const DefaultTenant TenantID = "default"

// OrDefault returns t, and [DefaultTenant] for the empty id.
func (t TenantID) OrDefault() TenantID {
	if t == "" {
		return DefaultTenant
	}
	return t
}

// Valid reports whether t has the form of a tenant's id.
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

// Stored returns t in the form in which it is stored: empty for [DefaultTenant], so that records
// from before there were tenants are of the default one.
func (t TenantID) Stored() TenantID {
	if t == DefaultTenant {
		return ""
	}
	return t
}

// Is reports whether t and other name the same tenant.
func (t TenantID) Is(other TenantID) bool { return t.OrDefault() == other.OrDefault() }

// Tenants says whose items a read of a store may return: those of one tenant, or of all. The
// zero value is those of none, so that whoever reads has to say it.
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

// OnlyTenant is the items of one tenant; the empty id is that of [DefaultTenant].
func OnlyTenant(id TenantID) Tenants { return Tenants{id.Stored(), oneTenant} }

// AllTenants is the items of all tenants: for those who operate the installation, and for what
// the system does by itself.
func AllTenants() Tenants { return Tenants{kind: allTenants} }

// Include reports whether items of the tenant are among them.
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
