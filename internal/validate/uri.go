package validate

import (
	"unicode"
	"unicode/utf8"

	"github.com/callyard/callyard/pkg/schema"
)

// MostURI is the most that the URI of a resource may take, in bytes.
const MostURI = 8 << 10

// URI refuses what cannot be the URI of a resource: nothing, more than [MostURI]
// bytes, and whatever cannot be printed, which RFC 3986 (section 2) has
// percent-encoded. It does not ask for more, because servers name their resources
// as they like. A server need not be ready for the rest: some end on a control
// character in the URI of a resource that they do not have, and all calls of
// others end with them. Errors are of KindInvalidRequest and do not repeat the URI.
func URI(uri string) error {
	if uri == "" || len(uri) > MostURI {
		return schema.Errorf(schema.KindInvalidRequest, "The URI of the resource must have 1 to %d bytes; this one has %d.", MostURI, len(uri))
	}
	for i, r := range uri {
		if _, size := utf8.DecodeRuneInString(uri[i:]); r == utf8.RuneError && size == 1 {
			return schema.Errorf(schema.KindInvalidRequest, "The URI of the resource is not valid UTF-8 at byte %d; percent-encode the byte.", i)
		}
		if !unicode.IsPrint(r) {
			return schema.Errorf(schema.KindInvalidRequest, "The URI of the resource has the character U+%04X at byte %d, which cannot be printed; percent-encode it.", r, i)
		}
	}
	return nil
}
