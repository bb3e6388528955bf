package validate

import (
	"unicode"
	"unicode/utf8"

	"github.com/callyard/callyard/pkg/schema"
)

// MostURI is the maximum size of a resource URI, in bytes.
const MostURI = 8 << 10

// URI rejects texts that cannot be a resource URI: an empty text, more than [MostURI] bytes, and
// non-printable characters, which RFC 3986 (section 2) requires to be percent-encoded. It has no
// further requirements, because servers choose the names of their resources. Servers may not handle
// invalid URIs: some crash on a control character in the URI of an unknown resource, which ends all
// calls in progress. Errors are of KindInvalidRequest and do not contain the URI.
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
