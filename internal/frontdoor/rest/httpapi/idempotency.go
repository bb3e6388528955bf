package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/pkg/schema"
)

// HeaderCallback names the URL that is notified when a call ends, for calls whose body consists of
// the arguments.
const HeaderCallback = "Callyard-Callback-Url"

// maxIdempotencyKey is the maximum length of a key: more than a UUID, and less than a body.
const maxIdempotencyKey = 255

// IdempotencyKey returns the caller's key, or "" if there is none. The format is that of the IETF
// draft, with or without its quotation marks.
func IdempotencyKey(r *http.Request) (string, error) {
	values := r.Header["Idempotency-Key"]
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	if n := len(key); n >= 2 && key[0] == '"' && key[n-1] == '"' {
		key = key[1 : n-1]
	}
	ok := len(values) == 1 && key != "" && len(key) <= maxIdempotencyKey
	for i := 0; ok && i < len(key); i++ {
		ok = key[i] > ' ' && key[i] < 0x7f
	}
	if !ok {
		return "", schema.Errorf(schema.KindInvalidRequest, "The header Idempotency-Key must be one value of 1 to %d visible ASCII characters, such as a UUID.", maxIdempotencyKey)
	}
	return key, nil
}

// Fingerprint returns a digest of the content of a request.
func Fingerprint(r *http.Request, body []byte) string {
	sum := sha256.New()
	for _, part := range []string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get(HeaderCallback)} {
		sum.Write([]byte(part))
		sum.Write([]byte{0})
	}
	sum.Write(body)
	return hex.EncodeToString(sum.Sum(nil))
}

// IdempotencySchema describes an idempotency key.
func IdempotencySchema() *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: fmt.Sprintf("^[!-~]{1,%d}$", maxIdempotencyKey)}
}

// IdempotencyParam describes the header Idempotency-Key of an operation that creates one call or
// batch.
func IdempotencyParam() *huma.Param {
	return &huma.Param{Name: "Idempotency-Key", In: "header", Description: "Makes a retry safe: for 24 hours, a request with the same key and the same content starts nothing again. While the first request runs, the answer is 409 with Retry-After. The same key with different content is refused with 422.", Schema: IdempotencySchema(), Example: "8e03978e-40d5-43dd-bc93-6894a57f9324"}
}
