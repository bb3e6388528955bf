package admission

import (
	"errors"

	"github.com/callyard/callyard/pkg/schema"
)

// unverified is a refusal of a call whose server or tool may not exist. The kind of the refusal must
// not tell whether they do, or cannot.
type unverified struct {
	error
	server bool // the server exists
}

func (u *unverified) Unwrap() error { return u.error }

// verify returns refused, marked if the server or the tool of the call is not known to exist. tool may be
// empty.
func (g *Gate) verify(call *schema.Call, tool string, refused error) error {
	if schema.KindOf(refused) == schema.KindNotFound {
		return refused
	}
	if _, err := g.catalog.Server(call.Server); err != nil {
		return &unverified{refused, false}
	}
	if tool == "" {
		return refused
	}
	if _, err := g.catalog.Tool(call.Server, tool); err != nil {
		return &unverified{refused, true}
	}
	return refused
}

// Names returns the server and the tool of a call that ended with err, each empty unless it is known to
// exist. Callers can make up other names, so these must not become labels or rows.
func Names(call *schema.Call, err error) (schema.ServerID, string) {
	if schema.KindOf(err) == schema.KindNotFound {
		return "", ""
	}
	if u, ok := errors.AsType[*unverified](err); ok {
		if u.server {
			return call.Server, ""
		}
		return "", ""
	}
	return call.Server, call.Tool
}
