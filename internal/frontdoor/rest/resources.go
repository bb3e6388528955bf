package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/callyard/callyard/pkg/schema"
	"github.com/callyard/callyard/pkg/schema/validate"
)

// nameMost is the most that the name of a prompt may take.
const nameMost = 8 << 10

func (a *API) registerResources() {
	a.raw(a.opListResources(), "/servers/{id}/resources", a.listResources)
	a.raw(a.opListTemplates(), "/servers/{id}/resources/templates", func(x *exchange, r *http.Request) error {
		return a.definitions(x, r, "resourceTemplates", func(d *schema.Definitions) []json.RawMessage { return d.ResourceTemplates })
	})
	read := a.opReadResource()
	a.raw(read, "/servers/{id}/resources/{uri...}", a.readResource)
	a.readUnclean = a.checked(&read, a.readResource)
	a.raw(a.opListPrompts(), "/servers/{id}/prompts", func(x *exchange, r *http.Request) error {
		return a.definitions(x, r, "prompts", func(d *schema.Definitions) []json.RawMessage { return d.Prompts })
	})
	a.raw(a.opGetPrompt(), "/servers/{id}/prompts/{name}", a.getPrompt)
}

// listResources is GET /servers/{id}/resources; with ?uri= it reads that one.
func (a *API) listResources(x *exchange, r *http.Request) error {
	if x.query.Has("uri") {
		timeout, err := a.timeout(x.query.Get("timeout_ms"), "timeout_ms")
		if err != nil {
			return err
		}
		call := &schema.Call{Timeout: timeout}
		return a.read(x, r, call, x.query.Get("uri"))
	}
	if x.query.Has("timeout_ms") {
		return badParameter("timeout_ms", "goes with uri only; the list is answered at once")
	}
	d, err := a.o.Catalog.Definitions(r.PathValue("id"))
	if err != nil {
		return err
	}
	a.sendList(x, "resources", d.Resources)
	return nil
}

// readResource is GET /servers/{id}/resources/{uri}, the URI percent-encoded. One
// that is not is understood as well, as far as a path can carry it.
func (a *API) readResource(x *exchange, r *http.Request) error {
	timeout, err := a.requestTimeout(x, r)
	if err != nil {
		return err
	}
	return a.read(x, r, &schema.Call{Timeout: timeout}, r.PathValue("uri"))
}

func (a *API) read(x *exchange, r *http.Request, call *schema.Call, uri string) error {
	if err := validate.URI(uri); err != nil {
		return err
	}
	params, err := json.Marshal(struct {
		URI string `json:"uri"`
	}{uri})
	if err != nil {
		return schema.Errorf(schema.KindInvalidRequest, "The URI of the resource cannot be sent.")
	}
	call.Method, call.Arguments = schema.MethodReadResource, params
	return a.ask(x, r, call)
}

// getPrompt is POST /servers/{id}/prompts/{name}: the body is the object of
// arguments, strings all of them.
func (a *API) getPrompt(x *exchange, r *http.Request) error {
	body, err := a.readBody(x, r, a.limits.ArgumentBytes)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		body = []byte("{}")
	}
	if err := validate.Arguments(body, a.limits.ArgumentBytes, a.limits.ArgumentDepth); err != nil {
		return err
	}
	if err := onlyStrings(body); err != nil {
		return err
	}
	timeout, err := a.requestTimeout(x, r)
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	if name == "" || len(name) > nameMost {
		return schema.Errorf(schema.KindInvalidRequest, "The name of the prompt must have 1 to %d characters; GET /servers/{id}/prompts lists them.", nameMost)
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return schema.Errorf(schema.KindInvalidRequest, "The name of the prompt cannot be sent.")
	}
	params := make([]byte, 0, len(quoted)+len(body)+32)
	params = append(append(params, `{"name":`...), quoted...)
	params = append(append(params, `,"arguments":`...), body...)
	return a.ask(x, r, &schema.Call{Method: schema.MethodGetPrompt, Arguments: append(params, '}'), Timeout: timeout})
}

// onlyStrings says which arguments of a prompt are something else.
func onlyStrings(body []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return schema.Errorf(schema.KindInvalidRequest, "The arguments of the prompt cannot be read.")
	}
	e := schema.Errorf(schema.KindInvalidArguments, "The arguments of a prompt are strings; some of these are not.")
	for name, raw := range members {
		if raw[0] != '"' {
			e.Faults = append(e.Faults, schema.Fault{Pointer: pointer(name), Message: "must be a string"})
		}
	}
	if len(e.Faults) == 0 {
		return nil
	}
	sortFaults(e.Faults)
	return e
}

// ask sends a request other than a tool call to the server of the path. Reading
// changes nothing, so it may be sent again.
func (a *API) ask(x *exchange, r *http.Request, call *schema.Call) error {
	call.ID, call.Server, call.Principal, call.Safe = schema.NewCallID(), r.PathValue("id"), x.principal, true
	a.trace(x, r, call)
	return unknownName(call, a.run(x, r, call, wish{}))
}

// Codes with which servers refuse a resource or a prompt: the first is of the older
// revisions, the second of the newest, and of servers that mean the arguments.
const (
	codeNoResource    = -32002
	codeInvalidParams = -32602
)

// unknownName makes the refusal of a server that does not know a resource, or does not
// take the name or the arguments of a prompt, an error of the request: nothing is wrong
// with the server. The JSON-RPC error stays in it.
func unknownName(call *schema.Call, err error) error {
	var e *schema.Error
	if !errors.As(err, &e) || e.Kind != schema.KindProtocol || e.RPC == nil {
		return err
	}
	said := *e
	switch code := e.RPC.Code; {
	case call.Method == schema.MethodReadResource && (code == codeNoResource || code == codeInvalidParams):
		said.Kind = schema.KindNotFound
		said.Detail = fmt.Sprintf("The server %q has no such resource; GET /servers/%s/resources lists those that it names.", call.Server, url.PathEscape(call.Server))
	case call.Method == schema.MethodGetPrompt && code == codeInvalidParams:
		said.Kind = schema.KindInvalidArguments
		said.Detail = fmt.Sprintf("The server %q does not know the prompt, or does not take these arguments; GET /servers/%s/prompts lists its prompts with theirs.", call.Server, url.PathEscape(call.Server))
	default:
		return err
	}
	return &said
}
