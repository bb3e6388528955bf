// Package tenants implements the operations on tenants: list and show them, with what each sees and
// uses.
//
// It owns the rules for which tenants a caller may see: administrators and auditors of the default
// tenant see all, others only their own. A tenant that the caller may not see is answered like one
// that does not exist, and no answer contains more of a receiver than its host. The package does not
// know what tenants may do; internal/tenants and the policy do. The names of its types are the names
// of schemas in the OpenAPI document.
package tenants
