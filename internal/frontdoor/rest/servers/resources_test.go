package servers

import (
	"errors"
	"net/http"
	"testing"

	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

func TestUnknownResourceOrPromptIsNotAServerError(t *testing.T) {
	for _, c := range []struct {
		method string
		code   int64
		status int
	}{
		{schema.MethodReadResource, -32002, http.StatusNotFound},
		{schema.MethodReadResource, -32602, http.StatusNotFound},
		{schema.MethodGetPrompt, -32602, http.StatusUnprocessableEntity},
		{schema.MethodReadResource, -32603, http.StatusBadGateway},
		{schema.MethodGetPrompt, -32002, http.StatusBadGateway},
		{"", -32602, http.StatusBadGateway},
	} {
		said := schema.Errorf(schema.KindProtocol, "The server refused the request.").WithCall("call_1")
		said.RPC = &schema.RPCError{Code: c.code, Message: "theirs"}
		e := schema.AsError(unknownName(&schema.Call{Method: c.method, Server: "demo"}, said))
		if got := problem.Status(e.Kind); got != c.status || e.RPC == nil || e.CallID != "call_1" {
			t.Errorf("%s %d: %d, %+v", c.method, c.code, got, e)
		}
	}
	other := errors.New("other")
	if got := unknownName(&schema.Call{Method: schema.MethodReadResource}, other); !errors.Is(got, other) || unknownName(&schema.Call{}, nil) != nil {
		t.Errorf("%v", got)
	}
}
