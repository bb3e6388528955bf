package frontdoor

import (
	"net/http"

	"github.com/rs/cors"

	"github.com/callyard/callyard/internal/kit/mcpwire"
)

// preflightSeconds is the time that a browser may cache the answer to a preflight request.
const preflightSeconds = 600

// withCORS answers preflight requests of pages from these origins and adds CORS headers to the
// answers of next. Without these headers a browser does not show an answer to its page (Fetch
// standard, section 3.2). Without origins it returns next.
func withCORS(origins []string, next http.Handler) http.Handler {
	if len(origins) == 0 {
		return next
	}
	return cors.New(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		// The page sends keys in headers, never in cookies. A page without a key is refused, so
		// any header may be sent and credentials are disabled.
		AllowedHeaders: []string{"*"},
		// In addition to the headers that every page may read (Fetch standard, section 2.2.6).
		ExposedHeaders: []string{
			"Age", "Callyard-Call-Id", "Callyard-Worker", "ETag", "Idempotency-Replayed", "Link", "Location", mcpwire.HeaderProtocolVersion, mcpwire.HeaderSessionID,
			"Preference-Applied", "Retry-After", "WWW-Authenticate", "X-Request-Id",
		},
		MaxAge:              preflightSeconds,
		AllowPrivateNetwork: true,
	}).Handler(next)
}
