// Package tenants has the operations on tenants: list and show them, with what each sees and uses.
//
// It owns who may see which tenants: administrators and auditors of the default tenant see all,
// others their own. It promises that a tenant that somebody may not see is answered like one that
// does not exist, and that no answer has more of a receiver than its host. It refuses to know
// what tenants may do; internal/tenants and the policy do. The names of its types are the names of
// schemas in the OpenAPI document.
package tenants
