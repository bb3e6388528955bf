package validate

import (
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/kit/jsonpointer"
	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/pkg/schema"
)

// Default limits of a front door.
const (
	defaultBytes = 1 << 20
	defaultDepth = 64
)

// maxToken and maxPointer limit the length of key names in an error.
const (
	maxToken   = 128
	maxPointer = 1024
)

// Arguments checks that raw is one strict JSON object of at most maxBytes bytes and maxDepth nested
// containers, including the object itself. A limit of zero or less means the default.
//
// The error is a *[schema.Error] of [schema.KindTooLarge] for too many bytes, otherwise of
// [schema.KindInvalidRequest]. It contains the byte offset and the JSON pointer, and no value.
// Valid input is read once without allocation, except for objects with more than 16 keys.
func Arguments(raw []byte, maxBytes, maxDepth int) error {
	if err := check(raw, maxBytes, maxDepth, "arguments", "Send one JSON object"); err != nil {
		return err
	}
	s := scanner{raw: raw}
	if i := s.space(0); raw[i] != '{' {
		return schema.Errorf(schema.KindInvalidRequest,
			"The arguments are %s, at byte %d; send one JSON object.", kindAt(raw[i]), i)
	}
	return nil
}

// Value is [Arguments] for any JSON value, not only an object.
func Value(raw []byte, maxBytes, maxDepth int) error {
	return check(raw, maxBytes, maxDepth, "JSON text", "Send one JSON value")
}

// check reads one JSON value. what names it in an error, and fix says what to send.
func check(raw []byte, maxBytes, maxDepth int, what, fix string) error {
	if most := limit(maxBytes, defaultBytes); len(raw) > most {
		return schema.Errorf(schema.KindTooLarge,
			"The %s: %d bytes exceed the limit of %d; send less, or ask the operator to raise the limit.", what, len(raw), most)
	}
	s := scanner{raw: raw, maxDepth: limit(maxDepth, defaultDepth)}
	if s.document() < 0 {
		return s.err(what, fix)
	}
	return nil
}

func limit(given, standard int) int {
	if given <= 0 {
		return standard
	}
	return given
}

// err returns the fault as an error with a sentence for the caller.
func (s *scanner) err(what, fix string) error {
	if s.wrong == tooDeep {
		return schema.Errorf(schema.KindInvalidRequest,
			"The %s: %s of %d, at byte %d%s. Reduce the nesting.", what, s.wrong, s.maxDepth, s.at, s.place())
	}
	return schema.Errorf(schema.KindInvalidRequest,
		"The %s: %s, at byte %d%s. %s, strict and in UTF-8.", what, s.wrong, s.at, s.place(), fix)
}

func (s *scanner) place() string {
	if len(s.path) == 0 {
		return ""
	}
	tokens := slices.Clone(s.path)
	slices.Reverse(tokens)
	return " (" + pointer(tokens) + ")"
}

// pointer formats tokens as a JSON pointer (RFC 6901). Very long names are visibly shortened, so
// that the error stays small.
func pointer(tokens []string) string {
	var b strings.Builder
	for _, token := range tokens {
		if b.Len() > maxPointer {
			b.WriteString("/…")
			break
		}
		b.WriteByte('/')
		b.WriteString(jsonpointer.Token(truncate.Text(token, maxToken)))
	}
	return b.String()
}

// kindAt returns the kind of a value by its first byte.
func kindAt(c byte) string {
	switch c {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}
