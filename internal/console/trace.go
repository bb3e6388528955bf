package console

import (
	"strings"

	callyard "github.com/callyard/callyard/clients/go"
)

// traceOf returns the trace ID of a call, and the address of the trace, or "" if not known. The
// call records also have the trace of a batch call.
func (c callPages) traceOf(call *callyard.Call, record *callyard.CallRecord) (id, url string) {
	id = text(call.TraceID)
	if id == "" && record != nil {
		id = text(record.TraceID)
	}
	if c.o.TraceURL == "" || !soundTraceID(id) {
		return id, ""
	}
	return id, strings.Replace(c.o.TraceURL, "{trace_id}", id, 1)
}

// soundTraceID reports whether a text is a trace-id of https://www.w3.org/TR/trace-context/. Any
// other text could change the target of a link.
func soundTraceID(id string) bool {
	return len(id) == 32 && strings.Trim(id, "0123456789abcdef") == "" && strings.Trim(id, "0") != ""
}
