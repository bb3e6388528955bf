package rest

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// freshness reads what the caller says of the cache of results; most say nothing.
func freshness(r *http.Request, call *schema.Call) {
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

// cached tells how the cache met the call (RFC 9211).
func (x *exchange) cached(c *schema.Caching) {
	status := ""
	switch {
	case c.Hit:
		x.set("Age", strconv.FormatInt(int64(c.Age/time.Second), 10))
		status = "callyard; hit; ttl=" + strconv.FormatInt(int64(c.TTL/time.Second), 10)
	case c.Collapsed:
		status = "callyard; fwd=miss; collapsed"
	case c.Miss:
		status = "callyard; fwd=miss"
	case c.Fresh:
		status = "callyard; fwd=request"
	default:
		return
	}
	if c.Stored && !c.Collapsed {
		status += "; stored"
	}
	x.set("Cache-Status", status)
}
