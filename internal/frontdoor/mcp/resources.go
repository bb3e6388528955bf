package mcp

import (
	"context"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/pkg/schema"
)

// readResource serves resources/read. At /mcp it uses the server that lists the URI or has a
// matching template; see [ownURI] if several do.
func (r *requests) readResource(ctx context.Context, x *exchange) ([]byte, *fault) {
	uri, bad := resourceURI(x.msg.params)
	if bad != nil {
		return nil, bad
	}
	to, bad := r.lists.resource(x, uri)
	if bad != nil {
		return nil, bad
	}
	if to.server == "" {
		return nil, x.noResource(uri)
	}
	result, bad := r.forward(ctx, x, schema.MethodReadResource, to.server, "uri", quote(to.name))
	return readAs(result, to.name, uri), bad
}

// noResource returns the error for a resource that no server has.
func (x *exchange) noResource(uri string) *fault {
	f := &fault{Code: mcpwire.CodeInvalidParams, Message: "Resource not found", Data: uriParams(uri)}
	if !x.modern {
		f.Code = mcpwire.CodeNoResource
	}
	return f
}

// uriParams returns an object with the member uri.
func uriParams(uri string) []byte { return append(appendMember([]byte{'{'}, "uri", quote(uri)), '}') }

// resourceURI returns the uri member of the params.
func resourceURI(params []byte) (string, *fault) {
	uri, ok := str(get(params, "uri"))
	if !ok {
		return "", invalidParams("The params have no resource uri.")
	}
	if err := validate.URI(uri); err != nil {
		return "", invalidParams(err.Error())
	}
	return uri, nil
}

// getPrompt serves prompts/get.
func (r *requests) getPrompt(ctx context.Context, x *exchange) ([]byte, *fault) {
	name, ok := str(x.msg.param("name"))
	if !ok {
		return nil, invalidParams("The params have no prompt name.")
	}
	to, ok := r.lists.prompt(x, name)
	if !ok {
		return nil, invalidParams("Unknown prompt: " + problem.Printable(name, maxPrinted))
	}
	return r.forward(ctx, x, schema.MethodGetPrompt, to.server, "name", quote(to.name))
}

// complete serves completion/complete, for an argument of a prompt or of a template.
func (r *requests) complete(ctx context.Context, x *exchange) ([]byte, *fault) {
	ref := x.msg.param("ref")
	switch getString(ref, "type") {
	case "ref/prompt":
		to, ok := r.lists.prompt(x, getString(ref, "name"))
		if !ok {
			return nil, invalidParams("Unknown prompt: " + problem.Printable(getString(ref, "name"), maxPrinted))
		}
		return r.forward(ctx, x, schema.MethodComplete, to.server, "ref", withMember(ref, "name", quote(to.name)))
	case "ref/resource":
		to, bad := r.lists.template(x, getString(ref, "uri"))
		if bad != nil {
			return nil, bad
		}
		if to.server == "" {
			return nil, invalidParams("No server has this resource template.")
		}
		return r.forward(ctx, x, schema.MethodComplete, to.server, "ref", withMember(ref, "uri", quote(to.name)))
	}
	return nil, invalidParams("The ref must be of type ref/prompt or ref/resource.")
}

// forward sends a request other than a tool call to a server. Such a request changes nothing, so
// it may be retried. The member of the params with this name gets the value.
func (r *requests) forward(ctx context.Context, x *exchange, method string, server schema.ServerID, name string, as []byte) ([]byte, *fault) {
	ours, state, isOurs := unwrapState(x.msg.param("requestState"))
	isOurs = isOurs && ours.Connect && x.modern
	if isOurs {
		if refused := r.connected(ctx, x, server, x.msg.param("inputResponses")); refused != nil {
			return nil, x.faultOf(refused)
		}
	}
	params := []byte{'{'}
	each(x.msg.params, func(key string, value []byte) {
		if key == "_meta" || isOurs && (key == "inputResponses" || key == "requestState") {
			return
		}
		switch key {
		case "requestState":
			value = state
		case name:
			value = as
		}
		params = appendMember(params, key, value)
	})
	if about := x.meta.forwarded(x.capabilities(), ""); about != nil {
		params = appendMember(params, "_meta", about)
	}
	return r.run(ctx, x, &schema.Call{
		ID: schema.NewCallID(), Method: method, Server: server, Principal: x.principal, Safe: true, Arguments: append(params, '}'), Trace: x.meta.trace,
	})
}
