package mcpface

import (
	"context"

	"github.com/callyard/callyard/pkg/schema"
	"github.com/callyard/callyard/pkg/schema/validate"
)

// readResource is resources/read. At /mcp the server is the one that lists the
// URI, or has a template for it; see [ownURI] where several do.
func (f *Face) readResource(ctx context.Context, x *exchange) ([]byte, *fault) {
	uri, bad := x.uri()
	if bad != nil {
		return nil, bad
	}
	to, bad := f.resource(x.mount, uri)
	if bad != nil {
		return nil, bad
	}
	if to.server == "" {
		f := &fault{Code: codeInvalidParams, Message: "Resource not found", Data: append(append([]byte(`{"uri":`), quote(uri)...), '}')}
		if !x.modern {
			f.Code = codeNoResource
		}
		return nil, f
	}
	result, bad := f.ask(ctx, x, schema.MethodReadResource, to.server, func(key string, value []byte) []byte {
		if key == "uri" {
			return quote(to.name)
		}
		return value
	})
	return readAs(result, to.name, uri), bad
}

// uri is the one of the params.
func (x *exchange) uri() (string, *fault) {
	uri, ok := str(get(x.msg.params, "uri"))
	if !ok {
		return "", &fault{Code: codeInvalidParams, Message: "The params lack the uri of the resource."}
	}
	if err := validate.URI(uri); err != nil {
		return "", &fault{Code: codeInvalidParams, Message: err.Error()}
	}
	return uri, nil
}

// getPrompt is prompts/get.
func (f *Face) getPrompt(ctx context.Context, x *exchange) ([]byte, *fault) {
	name, ok := str(get(x.msg.params, "name"))
	if !ok {
		return nil, &fault{Code: codeInvalidParams, Message: "The params lack the name of the prompt."}
	}
	to, ok := f.prompt(x.mount, name)
	if !ok {
		return nil, &fault{Code: codeInvalidParams, Message: "Unknown prompt: " + printable(name)}
	}
	return f.ask(ctx, x, schema.MethodGetPrompt, to.server, func(key string, value []byte) []byte {
		if key == "name" {
			return quote(to.name)
		}
		return value
	})
}

func (f *Face) prompt(mount, name string) (target, bool) {
	if mount != "" {
		return target{mount, name}, true
	}
	to, ok := f.view("").promptOf[name]
	return to, ok
}

// complete is completion/complete: of an argument of a prompt or of a template.
func (f *Face) complete(ctx context.Context, x *exchange) ([]byte, *fault) {
	ref := get(x.msg.params, "ref")
	switch getString(ref, "type") {
	case "ref/prompt":
		to, ok := f.prompt(x.mount, getString(ref, "name"))
		if !ok {
			return nil, &fault{Code: codeInvalidParams, Message: "Unknown prompt: " + printable(getString(ref, "name"))}
		}
		return f.ask(ctx, x, schema.MethodComplete, to.server, func(key string, value []byte) []byte {
			if key != "ref" {
				return value
			}
			return withMember(ref, "name", quote(to.name))
		})
	case "ref/resource":
		to, bad := f.template(x.mount, getString(ref, "uri"))
		if bad != nil {
			return nil, bad
		}
		if to.server == "" {
			return nil, &fault{Code: codeInvalidParams, Message: "No server has that template."}
		}
		return f.ask(ctx, x, schema.MethodComplete, to.server, func(key string, value []byte) []byte {
			if key != "ref" {
				return value
			}
			return withMember(ref, "uri", quote(to.name))
		})
	}
	return nil, &fault{Code: codeInvalidParams, Message: "The ref must be of type ref/prompt or ref/resource."}
}

// template finds the server of a template, or of a URI that a template makes, as
// [Face.resource] does.
func (f *Face) template(mount, template string) (target, *fault) {
	if mount == "" {
		if servers := f.view("").templatesOf[template]; len(servers) == 1 {
			return target{servers[0], template}, nil
		}
	}
	return f.resource(mount, template)
}

// ask sends a request other than a tool call to a server. It changes nothing, so it
// may be sent again. change, where set, replaces values of the params.
func (f *Face) ask(ctx context.Context, x *exchange, method, server string, change func(key string, value []byte) []byte) ([]byte, *fault) {
	params := []byte{'{'}
	each(x.msg.params, func(key string, value []byte) {
		if key == "_meta" {
			return
		}
		if change != nil {
			value = change(key, value)
		}
		params = appendMember(params, key, value)
	})
	capabilities := x.meta.capabilities
	if x.session != nil {
		capabilities = x.session.capabilities
	}
	if about := x.meta.forwarded(capabilities, ""); about != nil {
		params = appendMember(params, "_meta", about)
	}
	return f.run(ctx, x, &schema.Call{
		ID: schema.NewCallID(), Method: method, Server: server, Principal: x.principal, Safe: true, Arguments: append(params, '}'), Trace: x.meta.trace,
	})
}
