package mcp

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/sse"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// exchange is one HTTP request and the MCP messages that answer it. Its methods are safe for
// concurrent use.
type exchange struct {
	ep          *Endpoint
	r           *http.Request
	res         response
	principal   schema.Principal
	mount       string // "" for all servers
	known       bool
	searching   bool // the mount is in search mode
	msg         message
	meta        meta
	modern      bool
	opened      bool               // the user was asked to connect to the server, and has connected
	session     *session           // of the legacy era; nil if there is none
	ctx         context.Context    // of the work for this request
	span        *telemetry.Span    // nil if tracing is off
	reservation bodies.Reservation // memory budget of the body

	look   sync.Once
	looked *catalog.Seen // see shown
}

// visibleCatalog returns the catalog as the caller may see it, once the caller is authenticated.
func (x *exchange) visibleCatalog() *catalog.Seen {
	x.look.Do(func() {
		x.looked = catalog.SeenBy(x.ep.o.Catalog, x.principal.Tenant, calls.Judge(x.ep.o.Calls, &x.principal))
	})
	return x.looked
}

func newExchange(ep *Endpoint, w http.ResponseWriter, r *http.Request) *exchange {
	return &exchange{ep: ep, r: r, res: response{
		w: w, streams: readsEvents(r.Header["Accept"]), heartbeat: ep.o.Heartbeat, fixed: &ep.fixed, out: sse.Writer{W: w, Within: bodies.TimeFor},
	}}
}

// whileValid returns a context that ends with ctx, or soon after the caller's credential was revoked,
// has expired, or its access was withdrawn: then [invalidated] returns the reason. The caller must
// call cancel, which waits for the goroutine.
func (x *exchange) whileValid(ctx context.Context) (valid context.Context, cancel func()) {
	valid, end := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		look := time.NewTicker(lookEvery)
		defer look.Stop()
		for {
			select {
			case <-valid.Done():
				return
			case <-look.C:
				if err := x.ep.o.Keys.Continues(x.r, &x.principal); err != nil {
					end(schema.AsError(err))
					return
				}
			}
		}
	})
	return valid, func() {
		end(nil)
		watch.Wait()
	}
}

// invalidated returns the reason why the credential ended that ctx was created for, or nil.
func invalidated(ctx context.Context) error {
	if e, ok := errors.AsType[*schema.Error](context.Cause(ctx)); ok {
		return e
	}
	return nil
}

// notify sends a notification.
func (x *exchange) notify(method string, params []byte) error {
	b := append(appendQuoted([]byte(`{"jsonrpc":"2.0","method":`), method), `,"params":`...)
	return x.res.event(b, params, []byte{'}'})
}

// progress forwards a progress notification with the caller's progress token.
func (x *exchange) progress(params []byte) error {
	out := appendMember([]byte{'{'}, "progressToken", x.meta.token)
	each(params, func(key string, value []byte) {
		if key != "progressToken" {
			out = appendMember(out, key, value)
		}
	})
	return x.notify(mcpwire.NotifyProgress, append(out, '}'))
}

// reply answers the request with a result: the concatenated parts are an object.
func (x *exchange) reply(parts ...[]byte) {
	x.res.message(http.StatusOK, append(append([][]byte{x.head(`,"result":`)}, parts...), []byte{'}'})...)
}

// fail answers the request with an error.
func (x *exchange) fail(e *fault) {
	x.failed(e)
	if e.silent {
		return
	}
	x.res.message(e.httpStatus(x.modern), x.head(`,"error":`), e.encode(), []byte{'}'})
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

// refuse answers a request that is not a message or is not allowed.
func (x *exchange) refuse(status int, e *schema.Error) {
	x.fail(&fault{Code: kindCode(e.Kind), Message: e.Detail, Data: dataOf(e), status: status})
}

// isCanceled reports whether the client no longer waits for the answer: it disconnected (modern)
// or canceled (legacy).
func (x *exchange) isCanceled() bool { return x.ctx != nil && x.ctx.Err() != nil }
