package schema

// TenantID names a group of principals that share nothing with other groups: neither servers
// nor calls, batches, approvals or sessions. The operator chooses it in the configuration, or
// the identity provider in a claim of a token. It has the form of a server's id: letters,
// digits, "-" and "_". It is unique in an installation.
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

// Is reports whether t and other name the same tenant.
func (t TenantID) Is(other TenantID) bool { return t.OrDefault() == other.OrDefault() }
