package mcp

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

// authenticate finds out who asks, or answers that nobody known does.
func (ep *Endpoint) authenticate(x *exchange, r *http.Request) bool {
	who, err := ep.o.Keys.Authenticate(r)
	if err == nil {
		x.principal = who
		return true
	}
	e := schema.AsError(err)
	status := http.StatusUnauthorized
	if e.Kind == schema.KindQuota {
		status = http.StatusTooManyRequests
		x.res.w.Header().Set("Retry-After", "30")
	} else {
		x.res.w.Header().Set("WWW-Authenticate", `Bearer realm="callyard", resource_metadata="`+baseOf(r)+wellKnown+r.URL.EscapedPath()+`"`)
	}
	x.refuse(status, e)
	return false
}

// baseOf is the address by which the request reached us.
func baseOf(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	host := r.Host
	if strings.ContainsAny(host, "\"\\ ") {
		host = "localhost"
	}
	return scheme + "://" + host
}

// serveMetadata answers where and how a client proves who it is (RFC 9728). Keys
// are given out by the operator, so there is no authorization server to name.
func (ep *Endpoint) serveMetadata(x *exchange, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		x.res.w.Header().Set("Allow", "GET")
		x.refuse(http.StatusMethodNotAllowed, schema.Errorf(schema.KindInvalidRequest, "This path supports GET only."))
		return
	}
	resource := strings.TrimPrefix(r.URL.EscapedPath(), wellKnown)
	if resource == "" {
		resource = path
	}
	if resource != path && !strings.HasPrefix(resource, path+"/") && !isServerPath(resource) {
		x.refuse(http.StatusNotFound, schema.Errorf(schema.KindNotFound, "The resource does not exist."))
		return
	}
	body, err := json.Marshal(struct {
		Resource string   `json:"resource"`
		Name     string   `json:"resource_name"`
		Methods  []string `json:"bearer_methods_supported"`
	}{baseOf(r) + resource, "Callyard", []string{"header"}})
	if err != nil {
		x.fail(&fault{Code: mcpwire.CodeInternal, Message: "The metadata cannot be encoded."})
		return
	}
	x.res.body(http.StatusOK, ep.fixed.json, body)
}
