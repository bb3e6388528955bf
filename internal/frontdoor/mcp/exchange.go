package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/sse"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// exchange is one HTTP request: what came, and the MCP messages that answer it. Its
// methods are safe for concurrent use.
type exchange struct {
	ep          *Endpoint
	r           *http.Request
	res         response
	principal   schema.Principal
	mount       string // "" for all servers
	known       bool
	searching   bool // the mount is in the mode search
	msg         message
	meta        meta
	modern      bool
	opened      bool               // the client was sent to connect to the server, and has
	session     *session           // of the legacy era, nil for none
	ctx         context.Context    // of the work for it
	span        *telemetry.Span    // nil where there are no traces
	reservation bodies.Reservation // of memory for the body

	look   sync.Once
	looked *catalog.Seen // see shown
}

// shown returns the catalog as it is shown to whoever asks, once that is known.
func (x *exchange) shown() *catalog.Seen {
	x.look.Do(func() {
		x.looked = catalog.SeenBy(x.ep.o.Catalog, x.principal.Tenant, calls.Judge(x.ep.o.Calls, &x.principal))
	})
	return x.looked
}

func newExchange(ep *Endpoint, w http.ResponseWriter, r *http.Request) *exchange {
	return &exchange{ep: ep, r: r, res: response{
		w: w, streams: readsEvents(r.Header["Accept"]), heartbeat: ep.o.Heartbeat, fixed: &ep.fixed, out: sse.Writer{W: w, Within: timeFor},
	}}
}

// notify sends a notification.
func (x *exchange) notify(method string, params []byte) error {
	b := append(appendQuoted([]byte(`{"jsonrpc":"2.0","method":`), method), `,"params":`...)
	return x.res.event(b, params, []byte{'}'})
}

// progress passes a progress notification on, under the caller's own token.
func (x *exchange) progress(params []byte) error {
	out := appendMember([]byte{'{'}, "progressToken", x.meta.token)
	each(params, func(key string, value []byte) {
		if key != "progressToken" {
			out = appendMember(out, key, value)
		}
	})
	return x.notify(mcpwire.NotifyProgress, append(out, '}'))
}

// reply answers the request with a result: the parts, joined, are an object.
func (x *exchange) reply(parts ...[]byte) {
	x.res.message(http.StatusOK, append(append([][]byte{x.head(`,"result":`)}, parts...), []byte{'}'})...)
}

// fail answers the request with an error.
func (x *exchange) fail(e *fault) {
	if x.span != nil {
		x.failed(e)
	}
	if e.silent {
		return
	}
	raw, err := json.Marshal(e)
	if err != nil { // data of a server that is no JSON
		e.Data = nil
		raw, _ = json.Marshal(e)
	}
	x.res.message(e.httpStatus(x.modern), x.head(`,"error":`), raw, []byte{'}'})
}

func (x *exchange) head(member string) []byte {
	b := append(make([]byte, 0, 64), `{"jsonrpc":"2.0","id":`...)
	if x.msg.id == nil {
		b = append(b, "null"...)
	} else {
		b = append(b, x.msg.id...)
	}
	return append(b, member...)
}

// refuse answers what never was a message, or may not be one.
func (x *exchange) refuse(status int, e *schema.Error) {
	x.fail(&fault{Code: kindCode(e.Kind), Message: e.Detail, Data: dataOf(e), status: status})
}

// isCanceled reports that nobody waits for the answer: the client hung up (modern), or
// cancelled (legacy).
func (x *exchange) isCanceled() bool { return x.ctx != nil && x.ctx.Err() != nil }
