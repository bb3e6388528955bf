package mcp

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/search"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// A mount with ?mode=search lists three tools instead of its own, for models that cannot handle
// hundreds. A call_tool request is resolved to the real tool before any decision, so policy,
// approvals, limits and records see only that tool.

const (
	modeSearch = "search"

	toolFind     = "find_tools"
	toolDescribe = "describe_tools"
	toolCall     = "call_tool"

	findLimit    = 5
	maxFindLimit = 20
	maxDescribe  = 10
)

// searchTools is the tool list of a mount in search mode.
const searchTools = `"tools":[` +
	`{"name":"find_tools","title":"Find tools","description":"Finds tools by what they do. Returns how each is called; call one with call_tool. If nothing is found, no tool fits: try other words once, then do without.",` +
	`"inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"What the tool should do, in words."},"limit":{"type":"integer","minimum":1,"maximum":20,"description":"Default 5."}},"required":["query"]},` +
	`"annotations":{"readOnlyHint":true,"openWorldHint":false}},` +
	`{"name":"describe_tools","title":"Describe tools","description":"Returns the complete definitions of tools, with the schemas of their arguments.",` +
	`"inputSchema":{"type":"object","properties":{"names":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":10,"description":"Names as find_tools returned them."}},"required":["names"]},` +
	`"annotations":{"readOnlyHint":true,"openWorldHint":false}},` +
	`{"name":"call_tool","title":"Call a tool","description":"Calls a tool that find_tools returned.",` +
	`"inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"The name of the tool."},"arguments":{"type":"object","description":"Its arguments."}},"required":["name"]}}]`

const searchInstructions = `,"instructions":"There are more tools than are listed. Find one with find_tools, read its definition with describe_tools where its signature is not enough, and call it with call_tool."`

// modeOf reports whether a request is in search mode. It returns an error for an invalid mode.
func modeOf(r *http.Request) (searching bool, e *schema.Error) {
	if r.URL.RawQuery == "" {
		return false, nil
	}
	switch mode := r.URL.Query().Get("mode"); mode {
	case "":
		return false, nil
	case modeSearch:
		return true, nil
	default:
		return false, schema.Errorf(schema.KindInvalidRequest, "There is no mode %q; use mode=search, or omit it.", problem.Printable(mode, maxPrinted))
	}
}

// sendSearchTools answers tools/list.
func (ls *lists) sendSearchTools(x *exchange) {
	cursor, e := x.cursor()
	if cursor != "" {
		e = invalidParams("The cursor is invalid: the list has one page.")
	}
	if e != nil {
		x.fail(e)
		return
	}
	head := "{"
	if x.modern {
		head = `{"resultType":"complete","ttlMs":` + ttl + `,"cacheScope":"` + ls.scope() + `",`
	}
	x.reply([]byte(head), []byte(searchTools), []byte{'}'})
}

// unfold replaces call_tool with the call that it requests. done is true if the call was one of
// the other tools of this mode; result is then its result.
func (r *requests) unfold(x *exchange, name string, arguments []byte) (inner string, args, result []byte, done bool, f *fault) {
	bad := func(text string) (string, []byte, []byte, bool, *fault) {
		return "", nil, errorResult(text, "", nil), true, nil
	}
	if (name == toolFind || name == toolDescribe || name == toolCall) && !isObject(arguments) {
		return bad("The arguments must be an object.")
	}
	switch name {
	case toolFind:
		var in struct {
			Query string  `json:"query"`
			Limit float64 `json:"limit"` // 5.0 is an integer too
		}
		if json.Unmarshal(arguments, &in) != nil || strings.TrimSpace(in.Query) == "" {
			return bad(`find_tools needs {"query": "what the tool is to do"}. The member limit can be added: a number from 1 to 20.`)
		}
		most := findLimit
		if in.Limit >= 1 {
			most = int(min(in.Limit, maxFindLimit))
		}
		result, f = r.findTools(x, in.Query, most)
		return "", nil, result, true, f
	case toolDescribe:
		var in struct {
			Names []string `json:"names"`
		}
		if json.Unmarshal(arguments, &in) != nil || len(in.Names) == 0 || len(in.Names) > maxDescribe {
			return bad(`describe_tools needs {"names": […]} with 1 to 10 names that find_tools returned.`)
		}
		return "", nil, r.describeTools(x, in.Names), true, nil
	case toolCall:
		inner, ok := str(get(arguments, "name"))
		if !ok || inner == "" {
			return bad(`call_tool needs {"name": "a name that find_tools returned", "arguments": {…}}.`)
		}
		if _, known := r.lists.tool(r.lists.place(x), inner); !known {
			return bad("There is no tool " + problem.Printable(inner, maxPrinted) + ". find_tools returns the names of tools.")
		}
		args, e := innerArguments(arguments)
		if e != "" {
			return bad(e)
		}
		return inner, args, nil, false, nil
	}
	return name, arguments, nil, false, nil
}

// innerArguments returns the arguments for the tool that call_tool requests. e is the reason if they
// are not where its schema has them. Models can correct that, and a call without the arguments that a
// model wrote could do more than it meant.
func innerArguments(arguments []byte) (args []byte, e string) {
	each(arguments, func(key string, value []byte) {
		switch {
		case key == "arguments" && string(value) == "null":
		case key == "arguments":
			args = value
		case key != "name":
			e = "call_tool has no member " + problem.Printable(key, maxPrinted) + `. Write {"name": "…", "arguments": {…}}, with the arguments of the tool in arguments.`
		}
	})
	if e == "" && args != nil && !isObject(args) {
		e = "The member arguments must be an object with the arguments of the tool, not text."
	}
	return args, e
}

// findTools serves find_tools.
func (r *requests) findTools(x *exchange, query string, most int) ([]byte, *fault) {
	q := catalog.Query{Text: query, Most: most}
	if set, of := setOf(x.mount); of {
		q.Set = set
	} else {
		q.Server = schema.ServerID(x.mount)
	}
	found, err := x.visibleCatalog().Search(x.r.Context(), q)
	if err != nil {
		return nil, x.faultOf(err)
	}
	var b strings.Builder
	for i := range found.Tools {
		t := &found.Tools[i]
		name, ok := r.lists.nameOf(x, t)
		if !ok {
			continue // not offered over MCP
		}
		b.WriteString("- " + search.Signature(name, t.Input))
		if about := search.Summary(t.Raw); about != "" {
			b.WriteString(": " + about)
		}
		a := r.calls.Preview(&t.Tool, x.principal)
		b.WriteString(callConditions(&a) + "\n")
	}
	if b.Len() == 0 {
		b.WriteString("No tool fits.\n")
	}
	if len(found.Unmatched) > 0 {
		b.WriteString("No tool has the words: " + strings.Join(found.Unmatched, ", ") + "\n")
	}
	return textResult(strings.TrimSuffix(b.String(), "\n")), nil
}

// callConditions describes the special conditions of calls of a tool.
func callConditions(a *risk.Assessment) string {
	level := ""
	if a.Level > risk.Low {
		level = " (" + risk.LevelName(a.Level) + " risk)"
	}
	switch {
	case a.Deny:
		return level + " (the policy denies it)"
	case a.Approval != nil:
		return level + " (a person approves each call)"
	}
	return level
}

// nameOf returns the name of a tool at a mount.
func (ls *lists) nameOf(x *exchange, t *catalog.FoundTool) (string, bool) {
	to := target{t.Server, t.Name}
	v := ls.seen(x)
	names := []string{t.Name}
	switch {
	case t.NameInSet != "":
		names = []string{t.NameInSet}
	case x.mount == "":
		names = []string{format.MCPName(string(t.Server), t.Name), format.MarkedMCPName(string(t.Server), t.Name)}
	}
	for _, name := range names {
		if v.toolOf[name] == to {
			return name, true
		}
	}
	return "", false
}

// describeTools serves describe_tools.
func (r *requests) describeTools(x *exchange, names []string) []byte {
	definitions := []byte{'['}
	var unknown []string
	v := r.lists.seen(x)
	for _, name := range names {
		to, ok := v.toolOf[name]
		var t catalog.Tool
		if ok {
			var err error
			t, err = r.catalog.Tool(to.server, to.name)
			ok = err == nil && t.Offered()
		}
		if !ok {
			unknown = append(unknown, problem.Printable(name, maxPrinted))
			continue
		}
		if len(definitions) > 1 {
			definitions = append(definitions, ',')
		}
		e := entryOf(t.Raw, t.Name)
		definitions = append(definitions, e.renamed(name)...)
	}
	text := string(append(definitions, ']'))
	if len(unknown) > 0 {
		text += "\nThere are no tools " + strings.Join(unknown, ", ") + "."
	}
	return textResult(text)
}

// textResult returns a result with one text.
func textResult(text string) []byte {
	return append(appendQuoted([]byte(`{"content":[{"type":"text","text":`), text), `}]}`...)
}
