package console

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// newKeyScopes are the scopes in the form of a new key.
const newKeyScopes = "tools:read\ntools:call"

// roles lists the roles with their meaning, from most to least.
var roles = []option{
	{string(callyard.APIKeyRequestRolePlatformAdmin), "platform-admin: everything"},
	{string(callyard.APIKeyRequestRoleTenantAdmin), "tenant-admin: developer, and manage the tenant's keys and sets"},
	{string(callyard.APIKeyRequestRoleDeveloper), "developer: look at tools, call them, see own calls"},
	{string(callyard.APIKeyRequestRoleCaller), "caller: list and call tools"},
	{string(callyard.APIKeyRequestRoleAuditor), "auditor: read records, call nothing"},
}

// option is a value of a selection and its label.
type option struct{ Value, Label string }

// keyForm holds the fields of a key's form, as text.
type keyForm struct {
	Name, Owner, Tenant, Groups, Role, Scopes, Tools, Rate, Burst, InFlight, Note, Expires string
	Token, Refusal                                                                         string
	Known                                                                                  bool // the key exists; if false, the form creates it
	Faults                                                                                 []schema.Fault
}

// readForm returns the form of a request.
func readForm(f url.Values) keyForm {
	of := func(name string) string { return strings.ReplaceAll(strings.TrimSpace(f.Get(name)), "\r\n", "\n") }
	return keyForm{
		Name: of("name"), Owner: of("owner"), Tenant: of("tenant"), Groups: of("groups"), Role: of("role"), Scopes: of("scopes"), Tools: of("tools"),
		Rate: of("rate"), Burst: of("burst"), InFlight: of("in_flight"), Note: of("note"), Expires: of("expires"),
	}
}

// formOf returns the form that describes a key.
func formOf(k *callyard.APIKey) keyForm {
	form := keyForm{
		Known: true, Name: k.Name, Owner: text(k.Owner), Tenant: text(k.Tenant), Role: deref(k.Role), Note: text(k.Note),
		Groups: strings.Join(k.Groups, "\n"), Scopes: strings.Join(k.Scopes, "\n"), Tools: strings.Join(k.Tools, "\n"),
	}
	if l := k.Limits; l != nil {
		form.Rate, form.Burst, form.InFlight = decimal(l.Rate), formatWhole(l.Burst), formatWhole(l.InFlight)
	}
	if k.ExpiresAt != nil {
		form.Expires = k.ExpiresAt.UTC().Format(expiresForm)
	}
	return form
}

// decimal returns a number as people write it, or "" for nil.
func decimal(x *float64) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(*x, 'f', -1, 64)
}

// formatWhole is [decimal] for a whole number.
func formatWhole(x *int64) string {
	if x == nil {
		return ""
	}
	return strconv.FormatInt(*x, 10)
}

// listed returns the non-empty lines of a text.
func listed(s string) []string {
	list := []string{}
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}

// values are the fields of a form that are not texts or lists of them.
type values struct {
	Expires *time.Time // nil if the form has none
	Limits  callyard.APIKeyLimits
}

// values parses the form. The error has a fault for each field that it cannot parse. scopes are
// those of the form before the user changed it.
func (f *keyForm) values(scopes []string) (v values, err error) {
	var faults []schema.Fault
	fault := func(pointer, message string) {
		faults = append(faults, schema.Fault{Pointer: pointer, Message: message})
	}
	if f.Expires != "" {
		if at, ok := timeOf(f.Expires); ok {
			v.Expires = &at
		} else {
			fault("/expires_at", "must be a time like 2026-11-26T15:04, in UTC")
		}
	}
	if f.Rate != "" {
		if x, err := strconv.ParseFloat(f.Rate, 64); err == nil && x == x && x > -1e300 && x < 1e300 { // JSON has no NaN and no infinity
			v.Limits.Rate = nilIfZero(x)
		} else {
			fault("/limits/rate", "must be a number, such as 5 or 0.5")
		}
	}
	for _, n := range []struct {
		text, name string
		to         **int64
	}{{f.Burst, "burst", &v.Limits.Burst}, {f.InFlight, "in_flight", &v.Limits.InFlight}} {
		if n.text == "" {
			continue
		}
		if x, err := strconv.ParseInt(n.text, 10, 64); err == nil {
			*n.to = nilIfZero(x)
		} else {
			fault("/limits/"+n.name, "must be a whole number")
		}
	}
	// Scopes that the user wrote must not be dropped silently.
	if f.Role != "" && !slices.Equal(listed(f.Scopes), scopes) {
		fault("/scopes", "cannot be changed next to a role, which has its own scopes; choose no role to list scopes")
	}
	if len(faults) > 0 {
		err := schema.Errorf(schema.KindInvalidRequest, "The form has invalid fields.")
		err.Faults = faults
		return v, err
	}
	return v, nil
}

// nilIfZero returns nil for 0, which means no limit.
func nilIfZero[T int64 | float64](x T) *T {
	if x == 0 {
		return nil
	}
	return &x
}

// refuse shows an error in the form and returns the HTTP status.
func (f *keyForm) refuse(err error) int {
	d := problem.Of(err)
	f.Refusal, f.Faults = cmp.Or(d.Detail, d.Title), schema.AsError(err).Faults
	if len(f.Faults) > 0 {
		f.Refusal = "Nothing was stored. Correct the marked fields."
	}
	return d.Status
}

// keyField is a field of the form with the reasons why its value was refused.
type keyField struct {
	Name, Label, Hint, Value string
	Kind                     string // text, name, lines, note, time, number or choice
	Rows, Max                int
	Options                  []option // of a choice
	Faults                   []string
	First                    bool // the first refused field, which gets the focus
}

// Fields returns the fields in their order on the page.
func (f *keyForm) Fields() []keyField {
	hint := func(known, unknown string) string {
		if f.Known {
			return known
		}
		return unknown
	}
	fields := []keyField{
		{Name: "name", Label: "Name", Value: f.Name, Kind: "name", Max: 128},
		{Name: "owner", Label: "Owner", Hint: hint("the person or team behind the key", "the person or team behind the key; empty: yours"), Value: f.Owner, Max: 128},
		{Name: "role", Label: "Role", Hint: "a fixed set of scopes", Value: f.Role, Kind: "choice", Options: append([]option{{"", "No role: the scopes below"}}, roles...)},
		{Name: "scopes", Label: "Scopes", Hint: "without a role, one a line: tools:read, tools:list, tools:call, tools:call:SERVER, tools:call:@SET, calls:read, calls:read:all, approve, admin, admin:tenant", Value: f.Scopes, Kind: "lines", Rows: 3},
		{Name: "tools", Label: "Tools", Hint: "patterns of SERVER/TOOL, one a line; empty: all that the scopes allow", Value: f.Tools, Kind: "lines", Rows: 2},
		{Name: "groups", Label: "Groups", Hint: "one a line", Value: f.Groups, Kind: "lines", Rows: 2},
		{Name: "rate", Label: "Calls per second", Hint: "empty: no limit of its own", Value: f.Rate, Kind: "number"},
		{Name: "burst", Label: "Calls at once within the rate", Hint: "empty: those of one second", Value: f.Burst, Kind: "number"},
		{Name: "in_flight", Label: "Calls in flight", Hint: "empty: no limit of its own", Value: f.InFlight, Kind: "number"},
		{Name: "expires", Label: "Expires", Hint: hint("empty: as before", "empty: in 90 days"), Value: f.Expires, Kind: "time"},
		{Name: "note", Label: "Note", Value: f.Note, Kind: "note", Rows: 2, Max: 1000},
		{Name: "tenant", Label: "Tenant", Hint: "empty: yours", Value: f.Tenant, Max: 64},
	}
	if f.Known { // these never change
		fields = slices.DeleteFunc(fields, func(one keyField) bool { return one.Name == "name" || one.Name == "tenant" })
	}
	first := true
	for i := range fields {
		for _, fault := range f.Faults {
			if fieldOf(fault.Pointer) == fields[i].Name {
				fields[i].Faults = append(fields[i].Faults, sentence(fault))
			}
		}
		if first && len(fields[i].Faults) > 0 {
			fields[i].First, first = true, false
		}
	}
	return fields
}

// Other returns the faults that belong to no field of the form.
func (f *keyForm) Other() (other []schema.Fault) {
	fields := f.Fields()
	for _, fault := range f.Faults {
		if !slices.ContainsFunc(fields, func(one keyField) bool { return one.Name == fieldOf(fault.Pointer) }) {
			other = append(other, fault)
		}
	}
	return other
}

// fieldOf returns the name of the field for a JSON pointer into the body of the request.
func fieldOf(pointer string) string {
	name, rest, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	switch name {
	case "expires_at":
		return "expires"
	case "limits":
		return cmp.Or(rest, "rate") // the limits as a whole are explained at the first of them
	}
	return name
}

// sentence returns a fault as a sentence. Items of a list are counted from 1.
func sentence(fault schema.Fault) string {
	message := strings.TrimSuffix(fault.Message, ".")
	if parts := strings.Split(fault.Pointer, "/"); len(parts) == 3 {
		if i, err := strconv.Atoi(parts[2]); err == nil {
			return fmt.Sprintf("Line %d %s.", i+1, message)
		}
	}
	first, size := utf8.DecodeRuneInString(message)
	return string(unicode.ToUpper(first)) + message[size:] + "."
}
