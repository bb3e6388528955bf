package submit

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/pkg/schema"
)

// EnvelopeBytes is the maximum size of the body of POST /calls in addition to the arguments.
const EnvelopeBytes = 4 << 10

// ReadFreshness reads the caller's cache directives. Most callers send none.
func ReadFreshness(r *http.Request, call *schema.Call) {
	for _, header := range r.Header["Cache-Control"] {
		for directive := range strings.SplitSeq(header, ",") {
			switch strings.ToLower(strings.TrimSpace(directive)) {
			case "no-cache", "max-age=0":
				call.Fresh = true
			case "no-store":
				call.NoStore = true
			}
		}
	}
}

// ReadMembers reads the members that name a call and limit it. most is the maximum timeout.
func ReadMembers(members map[string]json.RawMessage, call *schema.Call, most time.Duration) error {
	var ms json.Number
	if err := cmp.Or(
		httpapi.ReadMember(members, "server", true, "a string, the id of a server", &call.Server),
		httpapi.ReadMember(members, "tool", true, "a string, the name of a tool", &call.Tool),
		httpapi.ReadMember(members, "timeout_ms", false, "a number of milliseconds", &ms),
	); err != nil {
		return err
	}
	call.Arguments = []byte("{}")
	if raw, ok := members["arguments"]; ok {
		call.Arguments = raw // verbatim; the gate validates them
	}
	if raw := members["timeout_ms"]; len(raw) > 0 && raw[0] == '"' {
		return schema.Errorf(schema.KindInvalidRequest, "The member timeout_ms must be a number, not a string.")
	}
	given, err := httpapi.ParseTimeout(ms.String(), "timeout_ms", most)
	if given > 0 {
		call.Timeout = given
	}
	return err
}
