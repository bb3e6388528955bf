package keys

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/authn/issued"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/pkg/schema"
)

// maxBodyBytes is the maximum size of a body in bytes.
const maxBodyBytes = 256 << 10

const graceIs = "a whole number of seconds between 0 and 604800"

// members are the members of a body, verbatim.
type members map[string]json.RawMessage

// read parses a body with these members.
func (h *handlers) read(x *httpapi.Exchange, r *http.Request, known ...string) (members, error) {
	return x.ReadMembers(r, maxBodyBytes, h.depth, known...)
}

// applyTo applies the requested settings of a key. Absent members leave a setting unchanged. A role
// replaces the listed scopes, and scopes replace the role.
func (m members) applyTo(w *issued.Settings) error {
	_, role := m["role"]
	_, scopes := m["scopes"]
	switch {
	case role && !scopes:
		w.Scopes = nil
	case scopes && !role:
		w.Role = ""
	}
	return cmp.Or(
		m.role(&w.Role), m.limits(&w.Limits),
		m.text("owner", false, issued.MostName, &w.Owner), m.list("groups", issued.MostGroups, &w.Groups), m.list("scopes", issued.MostScopes, &w.Scopes), m.list("tools", issued.MostTools, &w.Tools),
		m.text("note", false, issued.MostNote, &w.Note), m.at("expires_at", &w.Expires),
	)
}

func (m members) text(name string, required bool, most int, to *string) error {
	want := fmt.Sprintf("a text of at most %d characters", most)
	if err := httpapi.ReadMember(m, name, required, want, to); err != nil {
		return err
	}
	if utf8.RuneCountInString(*to) > most {
		return httpapi.BadMember(name, "%s", want)
	}
	return nil
}

// limits reads limits. {} removes them.
func (m members) limits(to *scope.Limits) error {
	raw, given := m["limits"]
	if !given {
		return nil
	}
	of, err := httpapi.ReadObject(raw, maxBodyBytes, 2, "rate", "burst", "in_flight")
	if err != nil {
		return httpapi.BadMember("limits", "an object with rate, burst and in_flight")
	}
	var l scope.Limits
	if err := cmp.Or(
		httpapi.ReadMember(of, "rate", false, "a number of calls per second", &l.Rate), httpapi.ReadMember(of, "burst", false, "a whole number", &l.Burst), httpapi.ReadMember(of, "in_flight", false, "a whole number", &l.InFlight),
	); err != nil {
		return httpapi.BadMember("limits", "an object of numbers: rate, burst and in_flight")
	}
	if err := l.Check(); err != nil {
		e := schema.Errorf(schema.KindInvalidRequest, "The member limits is invalid: the limits %s.", err)
		e.Faults = []schema.Fault{{Pointer: httpapi.Pointer("limits"), Message: err.Error()}}
		return e
	}
	*to = l
	return nil
}

func (m members) role(to *scope.Role) error {
	if _, given := m["role"]; !given {
		return nil
	}
	if err := m.text("role", false, issued.MostName, (*string)(to)); err != nil {
		return err
	}
	if err := to.Check(); err != nil {
		return httpapi.BadMember("role", "one of the roles: platform-admin, tenant-admin, developer, caller or auditor")
	}
	return nil
}

func (m members) list(name string, most int, to *[]string) error {
	want := fmt.Sprintf("a list of at most %d texts", most)
	list := *to
	if _, given := m[name]; given {
		list = nil // decode into a new list, so that the old list is not overwritten
	}
	if err := httpapi.ReadMember(m, name, false, want, &list); err != nil {
		return err
	}
	if len(list) > most {
		return httpapi.BadMember(name, "%s", want)
	}
	*to = list
	return nil
}

func (m members) at(name string, to *time.Time) error {
	return httpapi.ReadMember(m, name, false, "a time like 2026-01-02T15:04:05Z", to)
}
