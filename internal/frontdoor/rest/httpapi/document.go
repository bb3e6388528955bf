package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"sort"
	"strconv"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/problem"
)

// Document is the OpenAPI document and the mux: registering an operation adds it to both. Only one
// goroutine may use it until it is finished. After that it is immutable.
type Document struct {
	huma       huma.API
	mux        *http.ServeMux
	problems   *Problems
	names      map[reflect.Type]string // of schemas, if they differ from the type names
	last       []func(schemas map[string]*huma.Schema)
	unknown    []string               // operations without an entry in the table of scopes
	spec, yaml func() ([]byte, error) // encode the finished document once
}

// NewDocument returns a document that contains only the parts common to all operations.
func NewDocument(version string, mux *http.ServeMux, p *Problems) *Document {
	d := &Document{mux: mux, problems: p, names: map[reflect.Type]string{
		reflect.TypeFor[problem.Document](): openapi.SchemaProblem,
		reflect.TypeFor[problem.Fault]():    "ProblemFault",
		reflect.TypeFor[problem.RPCError](): "ProblemRPCError",
	}}
	config := huma.DefaultConfig("Callyard", version)
	config.Info.Description = documentText
	config.Info.License = &huma.License{Name: "Apache 2.0", URL: "https://www.apache.org/licenses/LICENSE-2.0"}
	config.Servers = []*huma.Server{{URL: "/", Description: "This front door"}}
	config.Tags = []*huma.Tag{
		{Name: openapi.TagCalls, Description: "Run tools and wait for their results."},
		{Name: openapi.TagBatches, Description: "Run many calls as a unit and read their results."},
		{Name: openapi.TagServers, Description: "The MCP servers of the fleet and their tools, resources and prompts."},
		{Name: openapi.TagSets, Description: "Named selections of tools over all servers."},
		{Name: openapi.TagFleet, Description: "Workers, events, health and metrics."},
		{Name: openapi.TagKeys, Description: "The API keys of callers: create, change, rotate and revoke them."},
		{Name: openapi.TagTenants, Description: "Teams whose calls, approvals and keys are kept apart."},
		{Name: openapi.TagUsage, Description: "The number of calls by tenant, key, server and tool."},
		{Name: openapi.TagWebhooks, Description: "Deliveries of webhooks that wait or were given up."},
		{Name: openapi.TagAudit, Description: "The records of requests, decisions and actions, and their verification."},
		{Name: openapi.TagEvaluations, Description: "Evaluations of models and their reports."},
	}
	config.Security = []map[string][]string{{"bearer": {}}, {"apiKey": {}}}
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer": {Type: "http", Scheme: "bearer", Description: "An API key, or an access token of an issuer that the operator configured. A front door without configured keys requires none and serves loopback only."},
		"apiKey": {Type: "apiKey", In: "header", Name: "X-API-Key", Description: "The same API key in its own header."},
	}
	// Callyard serves the document, the page and the links to schemas itself: Huma's load from
	// a public host, and its hook adds a $schema member to every body.
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil
	config.RejectUnknownQueryParameters = true
	// Answers may gain members. Handlers that read members refuse unknown ones themselves.
	config.AllowAdditionalPropertiesByDefault = true
	config.Transformers = []huma.Transformer{p.fromHuma}
	config.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", d.schemaName)
	d.huma = humago.New(mux, config)
	d.huma.UseMiddleware(withExchange, permitHuma, d.checkParameters)
	d.addProblems()
	return d
}

// output is the output of a Huma operation that has only a body.
type output[T any] struct{ Body T }

// NoInput is the input of an operation without parameters.
type NoInput struct{}

// Get registers a Huma operation. Its input has no body, and its answer is a Go value.
func Get[I, T any](d *Document, op huma.Operation, h func(context.Context, *I) (T, error)) {
	Register(d, op, func(ctx context.Context, in *I) (*output[T], error) {
		v, err := h(ctx, in)
		return &output[T]{v}, err
	})
}

// Register registers a Huma operation whose answer may also have headers. I and O are inputs and
// outputs as defined by Huma.
func Register[I, O any](d *Document, op huma.Operation, h func(context.Context, *I) (*O, error)) {
	d.operation(&op)
	huma.Register(d.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := h(ctx, in)
		if err != nil {
			return nil, problem.HumaError{Document: d.problems.Of(err)}
		}
		return out, nil
	})
}

// exchangeKey is the context key of the exchange of a request.
type exchangeKey struct{}

// withExchange adds the exchange to the context of Huma operations; see [Of].
func withExchange(ctx huma.Context, next func(huma.Context)) {
	_, w := humago.Unwrap(ctx)
	x, _ := w.(*Exchange)
	next(huma.WithValue(withOurStatus{ctx}, exchangeKey{}, x))
}

// Of returns the exchange of the request that a Huma operation serves.
func Of(ctx context.Context) *Exchange {
	x, _ := ctx.Value(exchangeKey{}).(*Exchange)
	return x
}

// Handle registers an operation that reads and writes bytes itself.
func (d *Document) Handle(op huma.Operation, h Handler) {
	d.HandleAt(op, op.Path, h)
}

// HandleValue registers an operation that answers with a Go value, whose schema Huma derives.
// The status is op.DefaultStatus, or 200; example may be nil.
func HandleValue[T any](d *Document, op huma.Operation, description string, example any, h func(*Exchange, *http.Request) (T, error)) {
	status := cmp.Or(op.DefaultStatus, http.StatusOK)
	res := op.Responses[strconv.Itoa(status)]
	if res == nil {
		res = &huma.Response{}
		op.Responses[strconv.Itoa(status)] = res
	}
	res.Description = description
	res.Content = map[string]*huma.MediaType{"application/json": {Schema: d.SchemaOf(reflect.TypeFor[T]()), Example: example}}
	d.Handle(op, func(x *Exchange, r *http.Request) error {
		v, err := h(x, r)
		if err == nil {
			x.SendJSON(status, Encode(v))
		}
		return err
	})
}

// HandleAt registers an operation whose mux pattern differs from the path in the document. It
// returns the handler, including the check of the parameters. It adds the statuses with which a body
// can be refused.
func (d *Document) HandleAt(op huma.Operation, pattern string, h Handler) Handler {
	if op.RequestBody != nil {
		maps.Copy(op.Responses, openapi.BodyRefusals(op.RequestBody))
	}
	d.huma.OpenAPI().AddOperation(&op)
	h = permitted(d.operation(&op), checked(&op, h))
	d.mux.HandleFunc(op.Method+" "+pattern, func(w http.ResponseWriter, r *http.Request) { Serve(w.(*Exchange), r, h) })
	return h
}

// HandleHTTP registers a handler that processes the whole request itself, including its
// parameters.
func (d *Document) HandleHTTP(op huma.Operation, h http.Handler) {
	d.huma.OpenAPI().AddOperation(&op)
	serve := permitted(d.operation(&op), func(x *Exchange, r *http.Request) error {
		h.ServeHTTP(x, r)
		return nil
	})
	d.mux.HandleFunc(op.Method+" "+op.Path, func(w http.ResponseWriter, r *http.Request) { Serve(w.(*Exchange), r, serve) })
}

// operation returns the access rules of an operation. An operation that is not in the table of
// scopes makes Finish fail, and with it the start.
func (d *Document) operation(op *huma.Operation) *operation {
	of, known := operationOf(op)
	if !known {
		d.unknown = append(d.unknown, op.OperationID)
	}
	return &of
}

func operationOf(op *huma.Operation) (of operation, known bool) {
	need, known := scope.OfOperation(op.OperationID)
	return operation{id: op.OperationID, need: need, act: IsAct(op.Method, need)}, known
}

// permitted returns a handler that first checks that the credential permits the operation.
func permitted(op *operation, h Handler) Handler {
	return func(x *Exchange, r *http.Request) error {
		return x.permit(r.Context(), op, r.URL.Path, func() error { return h(x, r) })
	}
}

// permitHuma does the same as permitted for Huma operations.
func permitHuma(ctx huma.Context, next func(huma.Context)) {
	op, _ := operationOf(ctx.Operation()) // Finish refuses those that are not in the table
	x, url := Of(ctx.Context()), ctx.URL()
	err := x.permit(ctx.Context(), &op, url.Path, func() error {
		next(ctx)
		return nil
	})
	if err != nil {
		x.Fail(err)
	}
}

// addProblems adds one response for each status of the table to the document. Operations refer to
// these responses.
func (d *Document) addProblems() {
	registry := d.huma.OpenAPI().Components.Schemas
	shape := registry.Schema(reflect.TypeFor[problem.Document](), true, "")
	responses := map[string]*huma.Response{
		"Problem": {Description: "Any other problem.", Content: map[string]*huma.MediaType{"application/problem+json": {Schema: shape}}},
	}
	byStatus := make(map[int][]problem.Row)
	for _, k := range problem.Rows() {
		byStatus[k.Status] = append(byStatus[k.Status], k)
	}
	for status, kinds := range byStatus {
		sort.Slice(kinds, func(i, j int) bool { return kinds[i].Kind < kinds[j].Kind })
		r := &huma.Response{Content: map[string]*huma.MediaType{"application/problem+json": {Schema: shape, Examples: make(map[string]*huma.Example)}}}
		for i, k := range kinds {
			if i > 0 {
				r.Description += " Or: "
			}
			r.Description += k.Meaning
			r.Content["application/problem+json"].Examples[string(k.Kind)] = &huma.Example{
				Summary: k.Title,
				Value: map[string]any{
					"type": "/problems/" + string(k.Kind), "title": k.Title, "status": k.Status, "detail": k.Meaning, "error": k.Meaning,
					"retryable": status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable,
				},
			}
		}
		switch status {
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			r.Headers = map[string]*huma.Param{"Retry-After": openapi.Header("The number of seconds to wait, at least 1.", huma.TypeInteger, 1)}
		case http.StatusConflict:
			r.Headers = map[string]*huma.Param{"Retry-After": openapi.Header("The number of seconds to wait, if the conflict ends by itself, such as while a call with the same Idempotency-Key runs.", huma.TypeInteger, 1)}
		case http.StatusUnauthorized:
			r.Headers = map[string]*huma.Param{"WWW-Authenticate": openapi.Header("How to send a credential.", huma.TypeString, `Bearer realm="callyard"`)}
		}
		responses["Problem"+strconv.Itoa(status)] = r
	}
	d.huma.OpenAPI().Components.Responses = responses
}

// SchemaOf registers the type and returns the reference to it.
func (d *Document) SchemaOf(t reflect.Type) *huma.Schema {
	return d.huma.OpenAPI().Components.Schemas.Schema(t, true, "")
}

// Schemas returns the schemas of the document by their names, to be added to.
func (d *Document) Schemas() map[string]*huma.Schema {
	return d.huma.OpenAPI().Components.Schemas.Map()
}

// NameSchema gives the schema of a type another name, because the type name is ambiguous outside
// its package. Generated clients use it as the type name. Call it before the type is registered.
func (d *Document) NameSchema(t reflect.Type, name string) { d.names[t] = name }

func (d *Document) schemaName(t reflect.Type, hint string) string {
	of := t
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if name, ok := d.names[of]; ok {
		return name
	}
	return huma.DefaultSchemaNamer(t, hint)
}

// AtLast registers a function that adds to the schemas what Go types cannot express. Finish calls
// these functions in the order of registration, after all operations are registered.
func (d *Document) AtLast(change func(schemas map[string]*huma.Schema)) {
	d.last = append(d.last, change)
}

func (d *Document) finishSchemas() {
	registry := d.huma.OpenAPI().Components.Schemas
	for name, s := range registry.Map() {
		if registry.TypeFromRef("#/components/schemas/"+name) != nil {
			openapi.Plain(s)
		}
	}
	for _, change := range d.last {
		change(registry.Map())
	}
}

// Finish completes the registration. The document is served as it is then. It returns an error if
// an operation is not in the table of scopes.
func (d *Document) Finish() error {
	if len(d.unknown) > 0 {
		return fmt.Errorf("internal/authn/scope does not say what these operations require: %v", d.unknown)
	}
	for _, unused := range []string{"ErrorModel", "ErrorDetail"} {
		delete(d.Schemas(), unused) // Huma's own schemas, which are never sent
	}
	d.finishSchemas()
	// Encoding takes tens of megabytes, and few processes ever serve the document.
	d.spec = sync.OnceValues(d.encode)
	d.yaml = sync.OnceValues(d.encodeYAML)
	return nil
}

func (d *Document) encode() ([]byte, error) {
	document := d.huma.OpenAPI()
	spec, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("encoding the OpenAPI document: %w", err)
	}
	// Only the encoding reads the responses.
	maps.DeleteFunc(document.Components.Responses, func(name string, _ *huma.Response) bool {
		return !bytes.Contains(spec, []byte(`"#/components/responses/`+name+`"`))
	})
	if spec, err = json.Marshal(document); err != nil {
		return nil, fmt.Errorf("encoding the OpenAPI document: %w", err)
	}
	return spec, nil
}

func (d *Document) encodeYAML() ([]byte, error) {
	if _, err := d.spec(); err != nil { // encoding as JSON removes unused parts
		return nil, err
	}
	text, err := d.huma.OpenAPI().YAML()
	if err != nil {
		return nil, fmt.Errorf("encoding the OpenAPI document as YAML: %w", err)
	}
	return text, nil
}

// JSON returns the finished document as JSON. It is encoded at the first call. Callers must not
// modify it. JSON and YAML are safe for concurrent use.
func (d *Document) JSON() ([]byte, error) { return d.spec() }

// YAML returns the finished document as YAML. It is encoded at the first call. Callers must not
// modify it.
func (d *Document) YAML() ([]byte, error) { return d.yaml() }

const documentText = `Callyard runs the tools of MCP servers for you: it sends a call to one of the workers that run the server, and returns the tool's result.

The first call:

` + "```" + `sh
curl --json '{"message":"hello"}' http://127.0.0.1:8080/servers/everything/tools/echo
` + "```" + `

Arguments reach the tool, and results reach you, byte for byte. A tool that fails returns a result with ` + "`isError: true`" + ` and status 200;
every other failure is an RFC 9457 problem document with a stable ` + "`type`" + `, and ` + "`retryable`" + ` says whether the same request can be sent again without a second side effect.

In answers, a member that is not required is absent if it has no value. An absent boolean is false, and an absent list is empty, unless the description of the member says otherwise.
No member is null, except inside arguments, results, definitions of MCP servers and messages of model providers. Times are in the format of RFC 3339. Digests are ` + "`sha256:`" + ` and 64 hex digits. Integers are exact in a double, except inside arguments and results.

A list with pages has the parameters ` + "`limit`" + ` and ` + "`cursor`" + `. Pass the member ` + "`next`" + ` of an answer (` + "`next_cursor`" + ` of GET /tools) as the cursor of the next request, with the other parameters
unchanged, until the member is absent. Cursors are opaque. A list without the parameter ` + "`cursor`" + ` has one page.`
