package scope

import (
	"fmt"
	"slices"
	"strings"
)

// Role is the name of a set of scopes. There are five fixed roles. Keys that need another set list
// scopes. Groups, not roles, decide who may approve calls.
type Role string

// Roles.
const (
	PlatformAdmin Role = "platform-admin"
	TenantAdmin   Role = "tenant-admin"
	Developer     Role = "developer"
	Caller        Role = "caller"
	Auditor       Role = "auditor"
)

// roles holds the scopes of each role, and roleNames their order, from most to least.
var (
	roles = map[Role][]string{
		PlatformAdmin: All(),
		// It has the scopes that its tenant's keys can get, because an administrator can give only
		// scopes that it has.
		TenantAdmin: {ReadTools, CallTools, ReadCalls, AdminTenant},
		Developer:   {ReadTools, CallTools, ReadCalls},
		Caller:      {ListTools, CallTools},
		Auditor:     {ReadTools, ReadAllCalls},
	}
	roleNames = []Role{PlatformAdmin, TenantAdmin, Developer, Caller, Auditor}
)

// Roles returns the names of the roles.
func Roles() []Role { return slices.Clone(roleNames) }

// Scopes returns the scopes of a role, or none for an unknown role.
func (r Role) Scopes() []string { return slices.Clone(roles[r]) }

// Check returns an error if the role does not exist.
func (r Role) Check() error {
	if _, ok := roles[r]; ok {
		return nil
	}
	names := make([]string, len(roleNames))
	for i, name := range roleNames {
		names[i] = string(name)
	}
	return fmt.Errorf("is %q, which is no role; the roles are %s", string(r), strings.Join(names, ", "))
}
