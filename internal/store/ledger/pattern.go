package ledger

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// PatternKind says how much of the arguments must be the same.
type PatternKind string

const (
	ExactArguments PatternKind = "exact"  // the same bytes
	SameValues     PatternKind = "values" // the same values at the named places
	AnyArguments   PatternKind = "any"    // whatever they are
)

// Pattern says which arguments a permission is for. It holds digests, never
// values: those stay with the approval that it was made from.
type Pattern struct {
	Kind PatternKind `json:"kind"`
	// ArgumentsDigest is of the arguments, for [ExactArguments].
	ArgumentsDigest string `json:"arguments_digest,omitempty"`
	// Values are what must be the same, for [SameValues]. Whoever asks for a
	// pattern names the pointers only.
	Values []Value `json:"values,omitempty"`
}

// Value is one place in the arguments and what stood there.
type Value struct {
	// Pointer is a JSON pointer (RFC 6901).
	Pointer string `json:"pointer"`
	// Digest is of the value's text without white space. Other spellings of the
	// same value (1 and 1.0) are other values: then people are asked.
	Digest string `json:"digest,omitempty"`
}

// Allow is the wish that calls like this one run without a question.
type Allow struct {
	Until   time.Time `json:"until"`
	Pattern Pattern   `json:"pattern"`
	// MaxUses is how many calls may run under it; 0 sets no limit.
	MaxUses int `json:"max_uses,omitempty"`
}

func (a *Allow) clone() *Allow {
	c := copied(a)
	if c != nil {
		c.Pattern.Values = slices.Clone(c.Pattern.Values)
	}
	return c
}

// maxPointers bounds a pattern.
const maxPointers = 32

// Of returns the pattern with the digests that these arguments have. The error
// is of KindInvalidRequest when the pattern has no sense, or no such place is in
// the arguments.
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

// Fits says that the arguments are like those that the pattern was made of.
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

// unescape reads one token of a pointer: ~0 is ~ and ~1 is /, and no other ~ is
// there.
func unescape(step string) (string, bool) {
	for rest := step; ; {
		i := strings.IndexByte(rest, '~')
		if i < 0 {
			return strings.NewReplacer("~1", "/", "~0", "~").Replace(step), true
		}
		if rest = rest[i+1:]; rest == "" || rest[0] != '0' && rest[0] != '1' {
			return "", false
		}
	}
}

// child returns the member or element of that name. A name that is there twice
// is there not at all: who reads it next may take the other one.
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
