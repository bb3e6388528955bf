package mcp

import (
	"cmp"
	"encoding/json"
	"hash/fnv"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// pageSize is the number of entries per page of a list.
	pageSize = 1000
	// ttl is the time, in milliseconds, that a client may cache a list. A client that listens
	// for notifications learns of changes sooner.
	ttl = "5000"
)

// lists caches the encoded lists of all mounts and resolves the names in them.
type lists struct {
	catalog *catalog.Catalog
	log     *slog.Logger
	private func() bool   // callers need keys
	changes atomic.Uint64 // number of catalog changes since the start

	mu      sync.RWMutex
	views   map[place]*view
	parts   map[partKey]*part // parts of views, for principals that may not see everything
	servers map[schema.ServerID]*serverLists
}

func newLists(o Options) *lists {
	return &lists{catalog: o.Catalog, log: o.Log, private: o.Keys.Configured, views: make(map[place]*view), servers: make(map[schema.ServerID]*serverLists)}
}

// view is the encoded content of one mount. It is immutable.
type view struct {
	mount       string
	at          uint64 // value of lists.changes
	tools       list
	resources   list
	templates   list
	prompts     list
	legacyTools list // the tools for clients of the legacy era
	marks       marks
	toolOf      map[string]target
	promptOf    map[string]target
	serversOf   map[string][]schema.ServerID // by resource URI
	templatesOf map[string][]schema.ServerID // by template
	patterns    []pattern
	headers     map[target][]mcpwire.ParamHeader
	taskOnly    map[target]bool
	servers     []*serverLists
	items       items
}

// items are the entries of all lists of a view, from which a part is built.
type items struct{ tools, resources, templates, prompts []item }

// place is a mount as a tenant sees it. Names there do not depend on servers that are hidden
// from the tenant, nor on sets of other tenants. Tenants that see every server share the places of
// the empty tenant, except for sets: the same set name may mean different sets to two tenants.
type place struct {
	tenant schema.TenantID
	mount  string
}

// place returns the place of a request.
func (ls *lists) place(x *exchange) place {
	at := place{mount: x.mount}
	tenant := x.principal.Tenant.OrDefault()
	if _, set := setOf(x.mount); set && tenant != schema.DefaultTenant || !catalog.TenantsOf(ls.catalog).All(tenant) {
		at.tenant = tenant
	}
	return at
}

// sees reports whether the server is visible at a place.
func (ls *lists) sees(at place, id schema.ServerID) bool {
	return at.tenant == "" || catalog.TenantsOf(ls.catalog).Sees(at.tenant, id)
}

// catalogAt returns the catalog visible at a place, before the principal's permissions are applied.
func (ls *lists) catalogAt(at place) *catalog.Seen {
	if at.tenant == "" {
		return catalog.SeenBy(ls.catalog, schema.DefaultTenant, nil)
	}
	return catalog.TenantsOf(ls.catalog).Seen(at.tenant)
}

// marks are compared to find out whether lists differ.
type marks struct{ tools, resources, prompts uint64 }

// target is the server and name that a name at a mount resolves to.
type target struct {
	server schema.ServerID
	name   string
}

// pattern matches the URIs of a template.
type pattern struct {
	match  *regexp.Regexp
	server schema.ServerID
}

// list is a list in pages, each encoded as the members of its result.
type list struct {
	pages [][]byte
	of    listID
	page  map[string]int // by cursor
}

// serverLists is the contribution of one server to the lists of its mounts.
type serverLists struct {
	server  schema.ServerID
	defs    *schema.Definitions
	off     string // names of the disabled tools, to detect changes
	offline bool   // nothing is offered
	tools   []entry
	prompts []entry

	resources, templates []json.RawMessage

	patterns []pattern
	headers  map[string][]mcpwire.ParamHeader // by tool
	taskOnly []string
	marks    marks
}

// view returns the current content of a mount.
func (ls *lists) view(at place) *view {
	now := ls.changes.Load()
	ls.mu.RLock()
	v := ls.views[at]
	ls.mu.RUnlock()
	if v != nil && v.at == now {
		return v
	}
	return ls.build(at, now)
}

func (ls *lists) build(at place, now uint64) *view {
	mount := at.mount
	if set, of := setOf(mount); of {
		return ls.buildSet(at, set, now)
	}
	var ids []schema.ServerID
	if mount != "" {
		if id := schema.ServerID(mount); ls.sees(at, id) {
			ids = []schema.ServerID{id}
		}
	} else {
		for _, s := range ls.catalog.Servers() {
			if ls.sees(at, s.ID) {
				ids = append(ids, s.ID)
			}
		}
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var servers []*serverLists
	for _, id := range ids {
		if p := ls.serverLocked(id); p != nil {
			servers = append(servers, p)
		}
	}
	old := ls.views[at]
	if old != nil && slices.Equal(old.servers, servers) {
		same := *old
		same.at = now
		ls.views[at] = &same
		return &same
	}
	v := assemble(mount, servers)
	v.at = now
	if mount == "" || len(servers) > 0 {
		ls.views[at] = v // do not cache unknown servers: callers can invent names
	} else {
		delete(ls.views, at)
		if ls.sees(at, schema.ServerID(mount)) {
			delete(ls.servers, schema.ServerID(mount))
		}
	}
	return v
}

// serverLocked returns the contribution of a server, or nil if it is not known.
func (ls *lists) serverLocked(id schema.ServerID) *serverLists {
	defs, err := ls.catalog.Definitions(id)
	if err != nil {
		return nil
	}
	tools, err := ls.catalog.Tools(id)
	if err != nil {
		return nil
	}
	s, err := ls.catalog.Server(id)
	if err != nil {
		return nil
	}
	if s.Offline != "" {
		if p := ls.servers[id]; p == nil || !p.offline {
			ls.servers[id] = &serverLists{server: id, defs: &schema.Definitions{}, offline: true}
		}
		return ls.servers[id]
	}
	var off strings.Builder
	for _, t := range tools {
		if !t.Offered() {
			off.WriteString(t.Name + "\x00")
		}
	}
	if p := ls.servers[id]; p != nil && p.defs == defs && p.off == off.String() {
		return p
	}
	p := ls.encode(id, defs, tools)
	p.off = off.String()
	ls.servers[id] = p
	return p
}

// encode encodes the definitions of a server. A tool that clients cannot parse is left out alone,
// so that the other tools remain usable.
func (ls *lists) encode(id schema.ServerID, defs *schema.Definitions, tools []catalog.Tool) *serverLists {
	p := &serverLists{server: id, defs: defs, headers: make(map[string][]mcpwire.ParamHeader)}
	sums := [3]uint64{}
	fit := entryMaker{log: ls.log, server: id}
	for _, t := range tools {
		if !t.Offered() {
			continue
		}
		if why := parseFault(t.Raw); why != "" {
			ls.log.Warn("a tool is not offered over MCP", "server", id, "tool", t.Name, "reason", why)
			continue
		}
		p.tools = append(p.tools, fit.tool(t.Raw, t.Name))
		if headers := mcpwire.ParamHeaders(get(t.Raw, "inputSchema")); headers != nil {
			p.headers[t.Name] = headers
		}
		if taskOnly(t.Raw) {
			p.taskOnly = append(p.taskOnly, t.Name)
		}
		sums[0] = mix(sums[0], t.Raw)
	}
	for _, raw := range defs.Prompts {
		if name := getString(raw, "name"); name != "" {
			p.prompts = append(p.prompts, entryOf(fit.one(listedPrompt, raw, name), name))
		}
		sums[2] = mix(sums[2], raw)
	}
	for _, raw := range defs.Resources {
		p.resources = append(p.resources, fit.resource(raw, getString(raw, "uri")))
		sums[1] = mix(sums[1], raw)
	}
	for _, raw := range defs.ResourceTemplates {
		uri := getString(raw, "uriTemplate")
		if match := patternOf(uri); match != nil {
			p.patterns = append(p.patterns, pattern{match, id})
		}
		p.templates = append(p.templates, fit.resource(raw, uri))
		sums[1] = mix(sums[1], raw)
	}
	fit.done()
	p.marks = marks{sums[0], sums[1], sums[2]}
	return p
}

func mix(sum uint64, text []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(strconv.AppendUint(nil, sum, 16)) // a hash never returns an error
	_, _ = h.Write(text)
	return h.Sum64()
}

// parseFault returns the reason why clients cannot parse a definition: both eras require an object
// schema for the arguments.
func parseFault(raw []byte) string {
	input := get(raw, "inputSchema")
	if !isObject(input) {
		return "its inputSchema is not an object"
	}
	if getString(input, "type") != "object" {
		return `its inputSchema is not of "type":"object"`
	}
	return ""
}

// assemble builds a view from its servers.
func assemble(mount string, servers []*serverLists) *view {
	v := &view{mount: mount, servers: servers, toolOf: make(map[string]target), promptOf: make(map[string]target), headers: make(map[target][]mcpwire.ParamHeader), taskOnly: make(map[target]bool)}
	var tools, prompts []item
	for _, p := range servers {
		tools = gather(tools, v.toolOf, p.tools, p.server, mount != "")
		prompts = gather(prompts, v.promptOf, p.prompts, p.server, mount != "")
		v.patterns = append(v.patterns, p.patterns...)
		v.need(p)
		for i, sum := range []*uint64{&v.marks.tools, &v.marks.resources, &v.marks.prompts} {
			of := [...]uint64{p.marks.tools, p.marks.resources, p.marks.prompts}[i]
			if of != 0 {
				*sum = mix(*sum, strconv.AppendUint([]byte(p.server), of, 16))
			}
		}
	}
	resources, serversOf := gatherURIs(servers, "uri", func(p *serverLists) []json.RawMessage { return p.resources }, mount != "")
	templates, templatesOf := gatherURIs(servers, "uriTemplate", func(p *serverLists) []json.RawMessage { return p.templates }, mount != "")
	v.serversOf, v.templatesOf = serversOf, templatesOf
	if mount == "" {
		byName := func(a, b item) int { return cmp.Compare(a.name, b.name) }
		slices.SortFunc(tools, byName)
		slices.SortFunc(prompts, byName)
	}
	v.encode(items{tools, resources, templates, prompts})
	return v
}

// need adds what calls of a server's tools need: headers for some, a task for others.
func (v *view) need(p *serverLists) {
	for tool, headers := range p.headers {
		v.headers[target{p.server, tool}] = headers
	}
	for _, tool := range p.taskOnly {
		v.taskOnly[target{p.server, tool}] = true
	}
}

// encode builds the pages of the lists.
func (v *view) encode(of items) {
	v.items = of
	v.tools, v.resources = v.paged("tools", of.tools), v.paged("resources", of.resources)
	if v.legacyTools = v.tools; slices.ContainsFunc(of.tools, func(it item) bool { return it.legacy != nil }) {
		v.legacyTools = v.paged("tools", legacyItems(of.tools))
	}
	v.templates, v.prompts = v.paged("resourceTemplates", of.templates), v.paged("prompts", of.prompts)
}

// paged encodes a list in pages. A cursor names the last entry of the previous page, so any
// front door with the same list can serve the next page.
func (v *view) paged(member string, items []item) list {
	l := list{of: listID{member, v.mount}, page: make(map[string]int)}
	for from := 0; from == 0 || from < len(items); from += pageSize {
		page := items[from:min(from+pageSize, len(items))]
		size := len(member) + 64
		for _, it := range page {
			size += len(it.raw) + 1
		}
		b := append(append(append(make([]byte, 0, size), '"'), member...), `":[`...)
		for i, it := range page {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, it.raw...)
		}
		b = append(b, ']')
		if from+pageSize < len(items) {
			cursor := l.of.cursor(page[len(page)-1].name)
			b = appendQuoted(append(b, `,"nextCursor":`...), cursor)
			l.page[cursor] = len(l.pages) + 1
		}
		l.pages = append(l.pages, append(b, '}'))
	}
	return l
}

// send answers with one of the encoded lists.
func (ls *lists) send(x *exchange) {
	if x.searching && x.msg.method == mcpwire.MethodListTools {
		ls.sendSearchTools(x)
		return
	}
	v := ls.seen(x)
	l := &v.tools
	if !x.modern {
		l = &v.legacyTools
	}
	switch x.msg.method {
	case mcpwire.MethodListResources:
		l = &v.resources
	case mcpwire.MethodListResourceTemplates:
		l = &v.templates
	case mcpwire.MethodListPrompts:
		l = &v.prompts
	}
	n, e := l.pageOf(x)
	if e != nil {
		x.fail(e)
		return
	}
	if x.session != nil && n == 0 {
		x.session.readList(x.msg.method, v.marks)
	}
	if !x.modern {
		x.reply([]byte{'{'}, l.pages[n])
		return
	}
	x.reply([]byte(`{"resultType":"complete","ttlMs":`+ttl+`,"cacheScope":"`+ls.scope()+`",`), l.pages[n])
}

// scope returns the cache scope of a list: if keys are required, only its caller may cache it.
func (ls *lists) scope() string {
	if ls.private() {
		return "private"
	}
	return "public"
}

// patternOf compiles a matcher for a URI template. It returns nil if the template is not supported.
func patternOf(template string) *regexp.Regexp {
	if template == "" || len(template) > validate.MostURI {
		return nil
	}
	var b strings.Builder
	b.WriteString(`^`)
	for rest := template; rest != ""; {
		literal, tail, found := strings.Cut(rest, "{")
		b.WriteString(regexp.QuoteMeta(literal))
		if !found {
			break
		}
		_, after, closed := strings.Cut(tail, "}")
		if !closed {
			return nil
		}
		b.WriteString(`.*`)
		rest = after
	}
	re, err := regexp.Compile(b.String() + `$`)
	if err != nil {
		return nil
	}
	return re
}
