package console

import (
	"strings"

	callyard "github.com/callyard/callyard/clients/go"
)

// traceOf is the id of the trace of a call, and the address at which it is shown, "" where that is
// not known. The execution log knows the trace of a call of a batch, too.
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

// soundTraceID says that a text is a trace-id of https://www.w3.org/TR/trace-context/. Any other
// could lead a link elsewhere.
func soundTraceID(id string) bool {
	return len(id) == 32 && strings.Trim(id, "0123456789abcdef") == "" && strings.Trim(id, "0") != ""
}
