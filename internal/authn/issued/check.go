package issued

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/pkg/schema"
)

// Maximum lengths, in characters, and counts of a key's fields.
const (
	MostName   = 128
	MostNote   = 1000
	MostTenant = 64
	mostTool   = 512
	MostGroups = 64
	MostScopes = 256
	MostTools  = 256
)

// check validates the properties of a key and sets defaults. The error is of KindInvalidRequest and
// names each fault.
func (k *Keys) check(w *Settings, now time.Time) error {
	var faults []schema.Fault
	fault := func(member, format string, args ...any) {
		faults = append(faults, schema.Fault{Pointer: "/" + member, Message: fmt.Sprintf(format, args...)})
	}
	text := func(member, value string, most int) {
		if !utf8.ValidString(value) || utf8.RuneCountInString(value) > most || strings.ContainsFunc(value, unicode.IsControl) {
			fault(member, "must have at most %d characters and no control characters", most)
		}
	}
	if w.Name == "" {
		fault("name", "must have 1 to %d characters", MostName)
	} else if why := k.reserved(w.Name); why != "" {
		fault("name", "%s", why)
	}
	person := func(member, value string) { // people distinguish keys by these texts
		text(member, value, MostName)
		if strings.TrimSpace(value) != value || strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsGraphic(r) }) {
			fault(member, "must have no spaces around it, and visible characters only")
		}
	}
	person("name", w.Name)
	person("owner", w.Owner)
	if w.Tenant != "" && !w.Tenant.Valid() {
		fault("tenant", "must be 1 to %d letters, digits, - and _, and begin with a letter or digit", MostTenant)
	}
	w.Tenant = w.Tenant.Stored()
	text("note", w.Note, MostNote)
	if err := w.Limits.Check(); err != nil {
		fault("limits", "%s", err)
	}
	list := func(member string, items []string, most, mostEach int) {
		if len(items) > most {
			fault(member, "must have at most %d items", most)
			return
		}
		for i, one := range items {
			if one == "" {
				fault(fmt.Sprintf("%s/%d", member, i), "must not be empty")
			}
			text(fmt.Sprintf("%s/%d", member, i), one, mostEach)
		}
	}
	list("groups", w.Groups, MostGroups, MostName)
	list("scopes", w.Scopes, MostScopes, mostTool)
	list("tools", w.Tools, MostTools, mostTool)
	if w.Role != "" {
		if err := w.Role.Check(); err != nil {
			fault("role", "%s", err)
		}
		if len(w.Scopes) > 0 {
			fault("scopes", "cannot be given next to a role, which has its own scopes")
		}
	} else if len(w.Scopes) == 0 {
		fault("scopes", "must have at least one scope, if there is no role")
	} else if _, err := scope.Parse(w.Scopes); err != nil {
		fault("scopes", "%s", err)
	}
	for i, one := range w.Tools {
		if !strings.Contains(one, "/") {
			fault(fmt.Sprintf("tools/%d", i), "must be SERVER/TOOL; SERVER/* is every tool of a server")
		}
	}
	switch {
	case w.Expires.IsZero():
		w.Expires = now.Add(Lasts)
	case !w.Expires.After(now):
		fault("expires_at", "must be in the future")
	case w.Expires.After(now.Add(MostLasts)):
		fault("expires_at", "must be within %d days", int(MostLasts.Hours()/24))
	}
	w.Expires = w.Expires.UTC()
	return invalid(faults)
}

// inTenant requires a name that no other tenant can give, because data under the name of a revoked
// key must not come to a new key of another tenant.
func inTenant(w *Settings) error {
	if w.Tenant.Is(schema.DefaultTenant) {
		return nil
	}
	if prefix := string(w.Tenant) + "/"; !strings.HasPrefix(w.Name, prefix) || w.Name == prefix {
		return invalid([]schema.Fault{{Pointer: "/name", Message: fmt.Sprintf("must begin with the tenant, %s", prefix)}})
	}
	return nil
}

func invalid(faults []schema.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	e := schema.Errorf(schema.KindInvalidRequest, "The API key is invalid: %s %s.", strings.TrimPrefix(faults[0].Pointer, "/"), faults[0].Message)
	e.Faults = faults
	return e
}
