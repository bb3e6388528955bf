package servers

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/pkg/schema"
)

// maxNameBytes is the maximum length of the name of a prompt in bytes.
const maxNameBytes = 8 << 10

// resourceHandlers are the operations on the resources and prompts of servers.
type resourceHandlers struct {
	runner  *submit.Runner
	catalog *catalog.Catalog
	limits  calls.Limits
}

// register returns the handler that reads a resource whose URI is in the path without
// percent-encoding.
func (h *resourceHandlers) register(d *httpapi.Document) (readUnclean httpapi.Handler) {
	h.describe(d)
	d.Handle(opServerTools(), h.listTools)
	d.Handle(h.opListResources(), h.listResources)
	d.Handle(opListTemplates(), func(x *httpapi.Exchange, r *http.Request) error {
		return sendDefinitions(x, h.catalog, r, "resourceTemplates", func(d *schema.Definitions) []json.RawMessage { return d.ResourceTemplates })
	})
	readUnclean = d.HandleAt(h.opReadResource(), "/servers/{id}/resources/{uri...}", h.readResource)
	d.Handle(opListPrompts(), func(x *httpapi.Exchange, r *http.Request) error {
		return sendDefinitions(x, h.catalog, r, "prompts", func(d *schema.Definitions) []json.RawMessage { return d.Prompts })
	})
	d.Handle(h.opGetPrompt(), h.getPrompt)
	return readUnclean
}

// listTools serves GET /servers/{id}/tools: the definitions of the server, verbatim, without tools
// in quarantine.
func (h *resourceHandlers) listTools(x *httpapi.Exchange, r *http.Request) error {
	id := schema.ServerID(r.PathValue("id"))
	seen := x.Operated(h.catalog)
	s, err := seen.Server(id)
	if err != nil {
		return err
	}
	if s.PinMode != schema.PinQuarantine {
		return sendDefinitions(x, h.catalog, r, "tools", func(d *schema.Definitions) []json.RawMessage { return d.Tools })
	}
	tools, err := seen.Tools(id)
	if err != nil {
		return err
	}
	items := make([]json.RawMessage, 0, len(tools))
	for i := range tools {
		if !tools[i].Quarantined() {
			items = append(items, tools[i].Raw)
		}
	}
	sendList(x, "tools", items)
	return nil
}

// listResources serves GET /servers/{id}/resources. With ?uri= it reads that resource.
func (h *resourceHandlers) listResources(x *httpapi.Exchange, r *http.Request) error {
	if x.Query.Has("uri") {
		within, err := httpapi.ParseTimeout(x.Query.Get("timeout_ms"), "timeout_ms", h.limits.MaxTimeout)
		if err != nil {
			return err
		}
		return h.read(x, r, &schema.Call{Timeout: within}, x.Query.Get("uri"))
	}
	if x.Query.Has("timeout_ms") {
		return httpapi.BadParameter("timeout_ms", "can be used only with uri; the list is returned at once")
	}
	return sendDefinitions(x, h.catalog, r, "resources", func(d *schema.Definitions) []json.RawMessage { return d.Resources })
}

// readResource serves GET /servers/{id}/resources/{uri}, with the URI percent-encoded. A URI without
// percent-encoding is also accepted, as far as a path can contain it.
func (h *resourceHandlers) readResource(x *httpapi.Exchange, r *http.Request) error {
	timeout, err := x.Timeout(r, h.limits.MaxTimeout)
	if err != nil {
		return err
	}
	return h.read(x, r, &schema.Call{Timeout: timeout}, r.PathValue("uri"))
}

func (h *resourceHandlers) read(x *httpapi.Exchange, r *http.Request, call *schema.Call, uri string) error {
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
	return h.ask(x, r, call)
}

// getPrompt serves POST /servers/{id}/prompts/{name}. The body is the object of arguments, which
// must all be strings.
func (h *resourceHandlers) getPrompt(x *httpapi.Exchange, r *http.Request) error {
	body, err := x.ReadBody(r, h.limits.ArgumentBytes)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		body = []byte("{}")
	}
	if err := validate.Arguments(body, h.limits.ArgumentBytes, h.limits.ArgumentDepth); err != nil {
		return err
	}
	if err := onlyStrings(body); err != nil {
		return err
	}
	timeout, err := x.Timeout(r, h.limits.MaxTimeout)
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	if name == "" || len(name) > maxNameBytes {
		return schema.Errorf(schema.KindInvalidRequest, "The name of the prompt must have 1 to %d characters; GET /servers/{id}/prompts lists them.", maxNameBytes)
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return schema.Errorf(schema.KindInvalidRequest, "The name of the prompt cannot be sent.")
	}
	params := make([]byte, 0, len(quoted)+len(body)+32)
	params = append(append(params, `{"name":`...), quoted...)
	params = append(append(params, `,"arguments":`...), body...)
	return h.ask(x, r, &schema.Call{Method: schema.MethodGetPrompt, Arguments: append(params, '}'), Timeout: timeout})
}

// onlyStrings returns an error that lists the arguments of a prompt that are not strings.
func onlyStrings(body []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return schema.Errorf(schema.KindInvalidRequest, "The arguments of the prompt cannot be read.")
	}
	e := schema.Errorf(schema.KindInvalidArguments, "The arguments of a prompt must be strings; some are not.")
	for name, raw := range members {
		if raw[0] != '"' {
			e.Faults = append(e.Faults, schema.Fault{Pointer: httpapi.Pointer(name), Message: "must be a string"})
		}
	}
	if len(e.Faults) == 0 {
		return nil
	}
	httpapi.SortFaults(e.Faults)
	return e
}

// ask sends a request other than a tool call to the server of the path. Such a request changes
// nothing, so it may be retried.
func (h *resourceHandlers) ask(x *httpapi.Exchange, r *http.Request, call *schema.Call) error {
	call.ID, call.Server, call.Principal, call.Safe = schema.NewCallID(), schema.ServerID(r.PathValue("id")), x.Principal, true
	call.Trace = x.Trace(r)
	return unknownName(call, h.runner.Run(x, r, call, submit.DurableOptions{}))
}

// unknownName converts a server's error for an unknown resource, or for the name or arguments of a
// prompt, into an error of the request, because the server works correctly. The JSON-RPC error
// remains in it. For resources, older revisions have a dedicated code, and the newest uses the code
// for any invalid params.
func unknownName(call *schema.Call, err error) error {
	var e *schema.Error
	if !errors.As(err, &e) || e.Kind != schema.KindProtocol || e.RPC == nil {
		return err
	}
	said := *e
	switch code := e.RPC.Code; {
	case call.Method == schema.MethodReadResource && (code == mcpwire.CodeNoResource || code == mcpwire.CodeInvalidParams):
		said.Kind = schema.KindNotFound
		said.Detail = fmt.Sprintf("Server %q does not have this resource; GET /servers/%s/resources lists its resources.", call.Server, url.PathEscape(string(call.Server)))
	case call.Method == schema.MethodGetPrompt && code == mcpwire.CodeInvalidParams:
		said.Kind = schema.KindInvalidArguments
		said.Detail = fmt.Sprintf("Server %q does not have this prompt, or does not accept these arguments; GET /servers/%s/prompts lists its prompts and their arguments.", call.Server, url.PathEscape(string(call.Server)))
	default:
		return err
	}
	return &said
}
