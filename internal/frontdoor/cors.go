package frontdoor

import (
	"net/http"

	"github.com/rs/cors"

	"github.com/callyard/callyard/internal/kit/mcpwire"
)

// preflightSeconds is how long a browser may keep the answer to a preflight request.
const preflightSeconds = 600

// withCORS answers preflight requests of pages of these origins, and adds the CORS headers
// to the answers of next, without which a browser keeps an answer from its page (Fetch
// standard, section 3.2). Without an origin it returns next.
func withCORS(origins []string, next http.Handler) http.Handler {
	if len(origins) == 0 {
		return next
	}
	return cors.New(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		// Keys travel in headers that the page sets, never in cookies: a page without
		// a key gets nothing, so any header may be sent and credentials stay off.
		AllowedHeaders: []string{"*"},
		// In addition to those that every page may read (Fetch standard, section 2.2.6).
		ExposedHeaders: []string{
			"Age", "Callyard-Call-Id", "Callyard-Worker", "ETag", "Idempotency-Replayed", "Link", "Location", mcpwire.HeaderProtocolVersion, mcpwire.HeaderSessionID,
			"Preference-Applied", "Retry-After", "WWW-Authenticate", "X-Request-Id",
		},
		MaxAge:              preflightSeconds,
		AllowPrivateNetwork: true,
	}).Handler(next)
}
