package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/callyard/callyard/internal/kit/jsonpointer"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/pkg/schema"
)

// ReadObject parses body as one strict JSON object and returns each member verbatim. Names are
// case-sensitive. If known is not empty, other names are refused.
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

// ReadMembers reads the whole body, and parses it like [ReadObject].
func (x *Exchange) ReadMembers(r *http.Request, limit, depth int, known ...string) (map[string]json.RawMessage, error) {
	body, err := x.ReadBody(r, limit)
	if err != nil {
		return nil, err
	}
	return ReadObject(body, limit, depth, known...)
}

// meant returns the known member that differs from name only in case.
func meant(known []string, name string) string {
	for _, k := range known {
		if strings.EqualFold(k, name) {
			return "; did you mean " + k + "?"
		}
	}
	return ""
}

// Pointer returns the JSON pointer of a member of the body.
func Pointer(name string) string {
	return "/" + jsonpointer.Token(problem.Printable(name, 128))
}

// PathPointer returns the JSON pointer of a path such as include[0].tool.
func PathPointer(path string) string {
	return "/" + strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(path)
}

// ReadMember decodes one member into v. want describes the expected value in words.
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

// BadMember returns the error for an invalid member of a body. want describes the expected value.
func BadMember(name, want string, args ...any) error {
	want = fmt.Sprintf(want, args...)
	e := schema.Errorf(schema.KindInvalidRequest, "The member %s must be %s.", name, want)
	e.Faults = []schema.Fault{{Pointer: Pointer(name), Message: "must be " + want}}
	return e
}

// Decode parses body into v and refuses members that v has no field for. what names the body in the
// error, as in "set". For a member of a wrong type, the error states the required JSON type.
func Decode(body []byte, what string, v any) error {
	strict := json.NewDecoder(bytes.NewReader(body))
	strict.DisallowUnknownFields()
	err := strict.Decode(v)
	if err == nil {
		return nil
	}
	var mismatch *json.UnmarshalTypeError
	if !errors.As(err, &mismatch) || mismatch.Field == "" {
		return schema.Errorf(schema.KindInvalidRequest, "The %s cannot be read: %s.", what, strings.TrimPrefix(err.Error(), "json: "))
	}
	e := schema.Errorf(schema.KindInvalidRequest, "The %s cannot be read: %s must be %s, not %s.", what, mismatch.Field, jsonType(mismatch.Type), mismatch.Value)
	e.Faults = []schema.Fault{{Pointer: "/" + strings.ReplaceAll(mismatch.Field, ".", "/"), Message: "must be " + jsonType(mismatch.Type)}}
	return e
}

// jsonType returns the JSON type that a Go type is decoded from.
func jsonType(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "an integer"
}

// SortFaults sorts faults by location.
func SortFaults(faults []schema.Fault) {
	sort.Slice(faults, func(i, j int) bool { return faults[i].Pointer < faults[j].Pointer })
}
