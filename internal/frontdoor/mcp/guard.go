package mcp

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/pkg/schema"
)

// resourceOf returns the path of the protected resource of a request. The host always comes from
// the configuration, not from the request.
func resourceOf(r *http.Request) string { return strings.TrimRight(r.URL.EscapedPath(), "/") }

// authenticate identifies the caller, or answers that the caller is unknown.
func (ep *Endpoint) authenticate(x *exchange, r *http.Request) bool {
	who, err := ep.o.Keys.Authenticate(r, resourceOf(r))
	if err == nil {
		x.principal = who
		x.reservation.By(&x.principal)
		return true
	}
	if e := schema.AsError(err); e.Kind == schema.KindQuota || e.Kind == schema.KindUnavailable {
		x.putOff(e, "30")
	} else {
		x.res.w.Header().Set("WWW-Authenticate", ep.o.Keys.Unauthenticated(r, resourceOf(r)))
		x.refuse(http.StatusUnauthorized, e)
	}
	return false
}

// putOff refuses a request that may be sent again after the given number of seconds. The error is
// of KindQuota or KindUnavailable.
func (x *exchange) putOff(e *schema.Error, seconds string) {
	status := http.StatusServiceUnavailable
	if e.Kind == schema.KindQuota {
		status = http.StatusTooManyRequests
	}
	x.res.set("Retry-After", seconds)
	x.refuse(status, e)
}

// allow returns nil if the credential has one of the scopes, else the fault to answer with. The
// challenge names the first scope.
func (x *exchange) allow(need ...string) *fault {
	if x.principal.Has(need...) {
		return nil
	}
	return x.insufficient(need...)
}

// allowTool checks the scopes for one tool.
func (x *exchange) allowTool(server schema.ServerID, tool string) *fault {
	if x.principal.MayCall(server, tool) == nil {
		return nil
	}
	return x.insufficient(scope.CallTools+":"+string(server), scope.CallTools)
}

func (x *exchange) insufficient(need ...string) *fault {
	header, err := x.ep.o.Keys.Insufficient(resourceOf(x.r), need...)
	x.res.set("Www-Authenticate", header)
	return &fault{Code: kindCode(err.Kind), Message: err.Detail, Data: dataOf(err), status: http.StatusForbidden}
}

// serveMetadata serves the protected resource metadata: where and how a client authenticates
// (RFC 9728).
func (ep *Endpoint) serveMetadata(x *exchange, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		x.res.w.Header().Set("Allow", "GET")
		x.refuse(http.StatusMethodNotAllowed, schema.Errorf(schema.KindInvalidRequest, "This path supports GET only."))
		return
	}
	resource := cmp.Or(ep.o.Keys.Below(strings.TrimPrefix(r.URL.EscapedPath(), wellKnown)), path)
	known := resource == path || strings.HasPrefix(resource, path+"/") || isServerPath(resource)
	body, ok := ep.o.Keys.Metadata(resource)
	if !known || !ok {
		x.refuse(http.StatusNotFound, schema.Errorf(schema.KindNotFound, "The resource does not exist."))
		return
	}
	// Programs in browsers read it before they have a token. It is the same for every caller.
	x.res.w.Header().Set("Access-Control-Allow-Origin", "*")
	x.res.body(http.StatusOK, ep.fixed.json, body)
}
