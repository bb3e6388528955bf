package scope

import (
	"fmt"
	"slices"
	"strings"
)

// Role is the name of a set of scopes. There are five, and they cannot be changed: whoever
// needs another set lists scopes. Who may approve calls is decided by groups, not by roles.
type Role string

// The roles.
const (
	PlatformAdmin Role = "platform-admin"
	TenantAdmin   Role = "tenant-admin"
	Developer     Role = "developer"
	Caller        Role = "caller"
	Auditor       Role = "auditor"
)

// roles is what each role has, and roleNames their order, from the most to the least.
var (
	roles = map[Role][]string{
		PlatformAdmin: All(),
		// It has what the keys of its tenant are to have: nobody gives more than they have.
		TenantAdmin: {ReadTools, CallTools, ReadCalls, AdminTenant},
		Developer:   {ReadTools, CallTools, ReadCalls},
		Caller:      {ListTools, CallTools},
		Auditor:     {ReadTools, ReadAllCalls},
	}
	roleNames = []Role{PlatformAdmin, TenantAdmin, Developer, Caller, Auditor}
)

// Roles returns the names of the roles.
func Roles() []Role { return slices.Clone(roleNames) }

// Scopes returns the scopes of a role, none for a name that is none.
func (r Role) Scopes() []string { return slices.Clone(roles[r]) }

// Check returns why there is no such role, nil where there is.
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
