package mcp

import (
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/kit/mcpwire"
)

// checkParamHeaders checks the headers that repeat arguments against the arguments.
func (r *requests) checkParamHeaders(x *exchange, to target, arguments []byte) *fault {
	for _, want := range r.lists.view(r.lists.place(x)).headers[to] {
		value := want.Argument(arguments)
		text, there := mcpwire.HeaderText(value)
		given := x.r.Header.Values(want.Name)
		mismatch := &fault{Code: mcpwire.CodeHeaderMismatch, Message: "The header " + want.Name + " does not repeat the argument " + strings.Join(want.Path, ".") + "."}
		switch {
		case len(given) > 1, there != (len(given) == 1):
			return mismatch
		case there:
			decoded, ok := mcpwire.DecodeHeader(given[0])
			if !ok || decoded != text && !sameNumber(decoded, value) {
				return mismatch
			}
		}
	}
	return nil
}

// sameNumber reports whether a header and a JSON value are the same number in different notation.
func sameNumber(text string, value []byte) bool {
	if len(value) == 0 || value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return false
	}
	a, err1 := strconv.ParseFloat(text, 64)
	b, err2 := strconv.ParseFloat(string(value), 64)
	return err1 == nil && err2 == nil && a == b
}
