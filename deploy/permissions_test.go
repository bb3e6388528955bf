package deploy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/bus"
)

func TestThePermissionsAreThoseOfTheBus(t *testing.T) {
	generated(t, "nats/permissions.conf", permissions(bus.Roles()...))
	// A server takes what it includes and does not use for a mistake.
	generated(t, "nats/permissions-region.conf", permissions(bus.RegionRole()))
}

// permissions are the roles as nats-server reads them.
func permissions(roles ...bus.Role) string {
	var b strings.Builder
	b.WriteString("# What each role may do: made of pkg/bus/roles.go by go test ./deploy -update.\n# What is not listed is denied.\n")
	list := func(what string, subjects []string) {
		fmt.Fprintf(&b, "  %s: { allow: [\n", what)
		for _, s := range subjects {
			fmt.Fprintf(&b, "    %q\n", s)
		}
		b.WriteString("  ] }\n")
	}
	for _, r := range roles {
		fmt.Fprintf(&b, "\n%s: {\n", strings.ToUpper(r.Name))
		list("publish", r.Publish)
		list("subscribe", r.Subscribe)
		b.WriteString("}\n")
	}
	return b.String()
}
