package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/pkg/schema"
)

// ReadObject reads body as one strict JSON object and returns each member as the
// bytes that came. Names count exactly as they are written; where any are known,
// others are refused.
func ReadObject(body []byte, limit, depth int, known ...string) (map[string]json.RawMessage, error) {
	with := ""
	if len(known) > 0 {
		with = " with " + strings.Join(known, ", ")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The body is empty; send a JSON object%s.", with)
	}
	if err := validate.Value(body, limit, depth); err != nil {
		return nil, err
	}
	members := make(map[string]json.RawMessage, len(known))
	if !rawjson.Members(body, func(name string, value []byte) { members[name] = value }) {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The body is not a JSON object; send a JSON object%s.", with)
	}
	if len(known) == 0 {
		return members, nil
	}
	var faults []schema.Fault
	for name := range members {
		if !slices.Contains(known, name) {
			faults = append(faults, schema.Fault{Pointer: Pointer(name), Message: "unknown member" + meant(known, name)})
		}
	}
	if len(faults) == 0 {
		return members, nil
	}
	SortFaults(faults)
	e := schema.Errorf(schema.KindInvalidRequest, "The body has unknown members, such as %s; the known members are %s.", faults[0].Pointer, strings.Join(known, ", "))
	e.Faults = faults
	return nil, e
}

// meant names the member that differs in case only.
func meant(known []string, name string) string {
	for _, k := range known {
		if strings.EqualFold(k, name) {
			return "; did you mean " + k + "?"
		}
	}
	return ""
}

// Pointer is the JSON pointer of a member of the body.
func Pointer(name string) string {
	name = problem.Printable(name, 128)
	return "/" + strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// ReadMember decodes one member into v. want says in words what it has to be.
func ReadMember(members map[string]json.RawMessage, name string, required bool, want string, v any) error {
	raw, ok := members[name]
	if !ok && !required {
		return nil
	}
	if ok && string(raw) != "null" && json.Unmarshal(raw, v) == nil {
		return nil
	}
	if ok {
		return BadMember(name, "%s", want)
	}
	e := schema.Errorf(schema.KindInvalidRequest, "The member %s is missing; it must be %s.", name, want)
	e.Faults = []schema.Fault{{Pointer: Pointer(name), Message: "is missing"}}
	return e
}

// BadMember refuses a member of a body that was read. want says what it has to be.
func BadMember(name, want string, args ...any) error {
	want = fmt.Sprintf(want, args...)
	e := schema.Errorf(schema.KindInvalidRequest, "The member %s must be %s.", name, want)
	e.Faults = []schema.Fault{{Pointer: Pointer(name), Message: "must be " + want}}
	return e
}

// SortFaults orders faults by where they are.
func SortFaults(faults []schema.Fault) {
	sort.Slice(faults, func(i, j int) bool { return faults[i].Pointer < faults[j].Pointer })
}
