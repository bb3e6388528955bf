package ledger

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/kit/jsonpointer"
	"github.com/callyard/callyard/pkg/schema"
)

// PatternKind determines which arguments must be the same.
type PatternKind string

const (
	ExactArguments PatternKind = "exact"  // the same bytes
	SameValues     PatternKind = "values" // the same values at the given pointers
	AnyArguments   PatternKind = "any"    // any arguments
)

// Pattern selects the arguments that a permission covers. It contains digests, never values: the values
// remain with the approval from which it was created.
type Pattern struct {
	Kind PatternKind `json:"kind" doc:"The arguments that match: exact, the same arguments; values, the same values at some places; any, every argument."`
	// ArgumentsDigest is the digest of the arguments, for [ExactArguments].
	ArgumentsDigest string `json:"arguments_digest,omitempty" doc:"For exact: the digest of the arguments. The approver sets it."`
	// Values must be the same, for [SameValues]. A request for a pattern contains only the
	// pointers.
	Values []Value `json:"values,omitempty" doc:"For values: the places whose values must be the same."`
}

// Value is a location in the arguments and the digest of its value.
type Value struct {
	// Pointer is a JSON pointer (RFC 6901).
	Pointer string `json:"pointer" doc:"A JSON pointer (RFC 6901) into the arguments."`
	// Digest is the digest of the value's JSON text without white space. Other notations of the
	// same value (1 and 1.0) do not match, so the call needs an approval.
	Digest string `json:"digest,omitempty" doc:"The digest of the value there. The approver sets it."`
}

// Allow requests that similar calls run without an approval.
type Allow struct {
	Until   time.Time `json:"until" doc:"The time until which calls are allowed."`
	Pattern Pattern   `json:"pattern" doc:"The arguments that calls may have."`
	// MaxUses limits the calls that may run under it; 0 means no limit.
	MaxUses int `json:"max_uses,omitempty" doc:"The maximum number of calls that are allowed; 0 or absent means no limit."`
}

func (a *Allow) clone() *Allow {
	c := copied(a)
	if c != nil {
		c.Pattern.Values = slices.Clone(c.Pattern.Values)
	}
	return c
}

// maxPointers limits the pointers of a pattern.
const maxPointers = 32

// Of returns the pattern with the digests of these arguments. The error is of KindInvalidRequest if the
// pattern is invalid, or a pointer does not exist in the arguments.
func (p Pattern) Of(args []byte) (Pattern, error) {
	is := Pattern{Kind: p.Kind}
	switch p.Kind {
	case AnyArguments:
	case ExactArguments:
		is.ArgumentsDigest = schema.Digest(args)
	case SameValues:
		if len(p.Values) == 0 || len(p.Values) > maxPointers {
			return is, schema.Errorf(schema.KindInvalidRequest, "Name 1 to %d JSON pointers of values that must stay the same.", maxPointers)
		}
		for _, v := range p.Values {
			sum, ok := valueAt(args, v.Pointer)
			if !ok {
				return is, schema.Errorf(schema.KindInvalidRequest, "The arguments have no value at the JSON pointer %q.", v.Pointer)
			}
			is.Values = append(is.Values, Value{v.Pointer, sum})
		}
	default:
		return is, schema.Errorf(schema.KindInvalidRequest, "The kind of a pattern must be exact, values or any.")
	}
	if p.Kind != SameValues && len(p.Values) > 0 {
		return is, schema.Errorf(schema.KindInvalidRequest, "Only patterns of kind values can have JSON pointers.")
	}
	return is, nil
}

// Fits reports whether the arguments match the pattern.
func (p Pattern) Fits(args []byte) bool {
	switch p.Kind {
	case AnyArguments:
		return true
	case ExactArguments:
		return p.ArgumentsDigest != "" && schema.Digest(args) == p.ArgumentsDigest
	case SameValues:
		for _, v := range p.Values {
			if sum, ok := valueAt(args, v.Pointer); !ok || v.Digest == "" || sum != v.Digest {
				return false
			}
		}
		return len(p.Values) > 0
	}
	return false
}

// valueAt returns the digest of the value at a JSON pointer.
func valueAt(doc []byte, pointer string) (string, bool) {
	at := json.RawMessage(doc)
	if pointer != "" {
		if pointer[0] != '/' {
			return "", false
		}
		for step := range strings.SplitSeq(pointer[1:], "/") {
			name, ok := unescape(step)
			if !ok {
				return "", false
			}
			if at, ok = child(at, name); !ok {
				return "", false
			}
		}
	}
	var plain bytes.Buffer
	if json.Compact(&plain, at) != nil {
		return "", false
	}
	return schema.Digest(plain.Bytes()), true
}

// unescape decodes one token of a pointer: ~0 is ~ and ~1 is /. No other ~ is valid.
func unescape(step string) (string, bool) {
	for rest := step; ; {
		i := strings.IndexByte(rest, '~')
		if i < 0 {
			return jsonpointer.Name(step), true
		}
		if rest = rest[i+1:]; rest == "" || rest[0] != '0' && rest[0] != '1' {
			return "", false
		}
	}
}

// child returns the member or element of that name. A duplicate name counts as missing, because the next
// reader may use the other one.
func child(at json.RawMessage, name string) (json.RawMessage, bool) {
	d := json.NewDecoder(bytes.NewReader(at))
	open, err := d.Token()
	if err != nil {
		return nil, false
	}
	switch open {
	case json.Delim('{'):
		var found json.RawMessage
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, false
			}
			var value json.RawMessage
			if d.Decode(&value) != nil {
				return nil, false
			}
			if key == name {
				if found != nil {
					return nil, false
				}
				found = value
			}
		}
		return found, found != nil
	case json.Delim('['):
		n, err := strconv.Atoi(name)
		if err != nil || n < 0 || strconv.Itoa(n) != name {
			return nil, false
		}
		for ; d.More(); n-- {
			var value json.RawMessage
			if d.Decode(&value) != nil {
				return nil, false
			}
			if n == 0 {
				return value, true
			}
		}
	}
	return nil, false
}
