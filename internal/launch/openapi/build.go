package openapi

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/internal/launch/adapt"
)

// operation is one operation of the service, ready to be called.
type operation struct {
	name     string
	id       string // operationId, may be empty
	tags     []string
	method   string
	template string // the path template
	pieces   []piece
	literal  string // the query that the template itself has
	base     *url.URL
	params   []*param
	body     *body
	carried  []credential
	fixed    map[string]bool // names that arguments must not set; see guard.taken
	accept   string
	wrap     bool // its output schema wraps the result as {"result": …}
	tool     []byte
}

// piece is a literal text or a parameter in a path template.
type piece struct {
	text  string
	param *param
}

// builder turns a document into operations.
type builder struct {
	cfg        *Config
	doc        *document
	base       *url.URL
	guard      *guard
	operations []*operation
	notes      []string
	bare       bool // requests are sent without the credentials that the document requires
}

func (b *builder) note(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}

// build fills operations and notes. The error is for the operator to fix.
func (b *builder) build() (err error) {
	if b.guard, err = newGuard(b.doc.model, b.cfg); err != nil {
		return err
	}
	if b.doc.doubt != "" {
		b.note("The document is not fully valid: %s.", b.doc.doubt)
	}
	found := b.find()
	if len(found) > maxOperations {
		return fmt.Errorf("%d of its operations are selected, which exceeds the limit of %d; select fewer with \"include\" and \"exclude\".", len(found), maxOperations)
	}
	size := 0
	for _, f := range found {
		if why := b.finish(f); why != "" {
			b.note("%s %s is skipped: %s.", f.method, f.template, why)
			continue
		}
		b.operations = append(b.operations, f.operation)
		if size += len(f.tool); size > maxTools {
			return fmt.Errorf("the definitions of its tools exceed the limit of %d bytes; select fewer with \"include\" and \"exclude\".", maxTools)
		}
	}
	if len(b.operations) == 0 {
		return errors.Join(errors.New("none of its operations can be a tool."), errors.New(b.firstNotes()))
	}
	return nil
}

// firstNotes returns the first notes in one text. A document has hundreds of operations, which
// are usually left out for the same reason.
func (b *builder) firstNotes() string {
	if more := len(b.notes) - maxNotes; more > 0 {
		return fmt.Sprintf("%s There are %d more such messages.", strings.Join(b.notes[:maxNotes], " "), more)
	}
	return strings.Join(b.notes, " ")
}

// candidate is an operation with its place in the document.
type candidate struct {
	*operation
	item *openapi3.PathItem
	at   *openapi3.Operation
	raw  any // the operation as in the document
	all  any // the parameters of its path as in the document
}

// find lists the selected operations in a fixed order with their names. Names are assigned before
// filtering, so that a filter does not change them.
func (b *builder) find() []candidate {
	var all []candidate
	var ops []*operation
	paths := b.doc.model.Paths.Map()
	for _, template := range slices.Sorted(maps.Keys(paths)) {
		item := paths[template]
		if item == nil {
			continue
		}
		byMethod := item.Operations()
		for _, method := range slices.Sorted(maps.Keys(byMethod)) {
			at := byMethod[method]
			if at == nil {
				continue
			}
			op := &operation{id: at.OperationID, tags: at.Tags, method: method, template: template}
			ops = append(ops, op)
			raw := b.doc.at(b.doc.root, "paths", template)
			all = append(all, candidate{op, item, at, b.doc.at(raw, strings.ToLower(method)), b.doc.at(raw, "parameters")})
		}
	}
	names(ops)
	choose := &chosen{include: b.cfg.OpenAPI.Include, exclude: b.cfg.OpenAPI.Exclude}
	found := all[:0:0]
	for _, c := range all {
		if choose.wants(c.operation) {
			found = append(found, c)
		}
	}
	for i := range choose.include {
		if !choose.hits("include", i) {
			b.note("include[%d] matches no operation of the document; correct it.", i)
		}
	}
	for i := range choose.exclude {
		if !choose.hits("exclude", i) {
			b.note("exclude[%d] matches no operation of the document; correct it.", i)
		}
	}
	return found
}

// finish completes an operation. why is the reason if it cannot be a tool.
func (b *builder) finish(c candidate) (why string) {
	switch c.method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		return "the method " + c.method + " is not supported for tools"
	}
	if why = b.where(c); why != "" {
		return why
	}
	ways := b.doc.model.Security
	if c.at.Security != nil {
		ways = *c.at.Security
	}
	carried, lacking, ok := b.guard.choose(ways)
	if !ok && len(b.cfg.sent()) == 0 && len(b.cfg.OpenAPI.Credentials) == 0 {
		// Without configured credentials the service either needs none, or the operator will see
		// its refusals.
		if !b.bare {
			b.bare = true
			b.note("The document requires the credential %q, but none is configured; requests are sent without it.", lacking)
		}
		ok = true
	}
	if !ok {
		return fmt.Sprintf("it requires the credential %q; add it to \"credentials\", or exclude the operation", lacking)
	}
	c.carried, c.fixed = carried, b.guard.taken
	if why = b.parameters(c); why != "" {
		return why
	}
	if why = c.split(); why != "" {
		return why
	}
	if why = b.requestBody(c); why != "" {
		return why
	}
	c.accept = accepted(c.at)
	return b.describe(c)
}

// where sets the address. Servers of a path or an operation count if they have the configured origin.
func (b *builder) where(c candidate) string {
	c.base = b.base
	servers := c.item.Servers
	if c.at.Servers != nil && len(*c.at.Servers) > 0 {
		servers = *c.at.Servers
	}
	if len(servers) == 0 {
		return ""
	}
	own := ""
	for _, s := range servers {
		switch u, ok := serverAddress(s, b.base); {
		case ok && adapt.OriginOf(u) == adapt.OriginOf(b.base):
			c.base = u
			return ""
		case ok && own == "":
			own = " (" + truncate.Text(adapt.OriginOf(u), 100) + ")"
		}
	}
	return "it has its own server" + own + ", which is not at " + adapt.OriginOf(b.base)
}

// parameters collects the parameters of the path and of the operation, which takes precedence.
func (b *builder) parameters(c candidate) string {
	type both struct {
		*openapi3.Parameter
		raw any
	}
	var list []both
	at := make(map[string]int)
	for _, half := range []struct {
		refs openapi3.Parameters
		raw  any
	}{{c.item.Parameters, c.all}, {c.at.Parameters, b.doc.at(c.raw, "parameters")}} {
		raws, _ := half.raw.([]any)
		if len(raws) != len(half.refs) {
			return "its parameters cannot be read"
		}
		for i, ref := range half.refs {
			if ref == nil || ref.Value == nil {
				return "one of its parameters cannot be read"
			}
			p := both{ref.Value, raws[i]}
			key := place(p.In, p.Name)
			if i, ok := at[key]; ok {
				list[i] = p
				continue
			}
			at[key] = len(list)
			list = append(list, p)
		}
	}
	keys := make(map[string]bool)
	// If several places have a parameter of the same name, the path parameter keeps the plain name,
	// then the query parameter.
	order := map[string]int{"path": 0, "query": 1, "header": 2, "cookie": 3}
	slices.SortStableFunc(list, func(a, z both) int { return order[a.In] - order[z.In] })
	for _, described := range list {
		p, use, why := b.parameter(described.Parameter, described.raw)
		if why != "" {
			return why
		}
		if !use {
			continue
		}
		p.key = p.name
		for n := 2; keys[p.key]; n++ {
			if p.key = p.name + "_" + p.in; keys[p.key] {
				p.key += fmt.Sprint("_", n)
			}
		}
		keys[p.key] = true
		c.params = append(c.params, p)
	}
	return ""
}

// parameter reads one parameter. use is false if callers do not set it.
func (b *builder) parameter(v *openapi3.Parameter, raw any) (p *param, use bool, why string) {
	switch {
	case v.Name == "":
		return nil, false, "one of its parameters has no name"
	case v.In == "header" && hopByHop[http.CanonicalHeaderKey(v.Name)], b.guard.taken[place(v.In, v.Name)]:
		return nil, false, ""
	case v.In == "header" && !mcpwire.IsToken(v.Name), v.In == "cookie" && !mcpwire.IsToken(v.Name):
		return nil, false, "the name of one of its parameters cannot be sent"
	}
	p = &param{name: v.Name, in: v.In, required: v.Required || v.In == "path", reserved: v.AllowReserved, about: v.Description, schema: b.doc.at(raw, "schema")}
	if why = p.setStyle(v.Style, v.Explode); why != "" {
		return nil, false, why
	}
	if v.Schema == nil && len(v.Content) > 0 {
		kind, key, media := pickMedia(v.Content)
		if !isJSON(kind) || media == nil {
			return nil, false, fmt.Sprintf("its parameter %q has an unsupported type", v.Name)
		}
		p.json, p.schema = true, b.doc.at(raw, "content", key, "schema")
	}
	return p, true, ""
}

// split splits the path template at its parameters.
func (op *operation) split() string {
	byName := make(map[string]*param)
	for _, p := range op.params {
		if p.in == "path" {
			byName[p.name] = p
		}
	}
	rest, literal, _ := strings.Cut(op.template, "?")
	if why := op.setLiteral(literal); why != "" {
		return why
	}
	for rest != "" {
		text, after, found := strings.Cut(rest, "{")
		if text != "" {
			op.pieces = append(op.pieces, piece{text: text})
		}
		if !found {
			break
		}
		name, after, found := strings.Cut(after, "}")
		p := byName[name]
		if !found || p == nil {
			return "its path has an undeclared parameter"
		}
		op.pieces = append(op.pieces, piece{param: p})
		rest = after
	}
	for _, p := range op.pieces {
		if strings.ContainsAny(p.text, "?#\\{} ") || strings.ContainsFunc(p.text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return "its path contains an invalid character"
		}
	}
	for name := range byName {
		if !strings.Contains(op.template, "{"+name+"}") {
			return "it declares a path parameter that its path does not have"
		}
	}
	if !strings.HasPrefix(op.template, "/") || dotted(op.template) {
		return "its path does not start with \"/\" or contains dot segments"
	}
	return ""
}

// setLiteral takes the query of a template like /messages?beta=true. The specification does not allow
// it, but public documents tell operations of one path apart by it.
func (op *operation) setLiteral(query string) (why string) {
	names, err := url.ParseQuery(query)
	if err != nil || strings.ContainsFunc(query, func(c rune) bool { return c <= ' ' || c >= 0x7f || strings.ContainsRune("{}#\\", c) }) {
		return "its path contains an invalid character"
	}
	for name := range names {
		if op.fixed[place("query", name)] || slices.ContainsFunc(op.params, func(p *param) bool { return p.in == "query" && p.name == name }) {
			return "the query in its path sets a parameter that is declared, too"
		}
	}
	op.literal = query
	return ""
}

// accepted returns the media types of the operation's responses, JSON first.
func accepted(at *openapi3.Operation) string {
	var kinds []string
	if at.Responses != nil {
		for _, status := range slices.Sorted(maps.Keys(at.Responses.Map())) {
			ref := at.Responses.Value(status)
			if ref == nil || ref.Value == nil || !strings.HasPrefix(status, "2") && status != "default" {
				continue
			}
			for _, kind := range slices.Sorted(maps.Keys(ref.Value.Content)) {
				if kind = cleanMedia(kind); kind != "" && !slices.Contains(kinds, kind) {
					kinds = append(kinds, kind)
				}
			}
		}
	}
	slices.SortStableFunc(kinds, func(a, z string) int {
		switch {
		case isJSON(a) == isJSON(z):
			return 0
		case isJSON(a):
			return -1
		}
		return 1
	})
	if len(kinds) == 0 || len(kinds) > 10 {
		return "application/json, */*;q=0.5"
	}
	return strings.Join(kinds, ", ") + ", */*;q=0.1"
}
