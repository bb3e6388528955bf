package mcp

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

// At /mcp the resources of all servers are in one list. A URI that several servers list
// would name several resources, so each of them is offered under a URI of its own:
// "callyard:SERVER:URI", with the id of the server percent-encoded. The same holds for
// templates. Such a URI is read whether or not the URI in it is shared at the moment, so
// that one which a client kept stays good.
const ownScheme = "callyard:"

// ownURI returns the URI, or the template, by which one server's resource is read at /mcp.
func ownURI(server schema.ServerID, uri string) string {
	return ownScheme + strings.ReplaceAll(url.PathEscape(string(server)), ":", "%3A") + ":" + uri
}

// splitURI returns the server and the URI that ownURI was made of; false for other URIs.
func splitURI(own string) (target, bool) {
	rest, ok := strings.CutPrefix(own, ownScheme)
	if !ok {
		return target{}, false
	}
	id, uri, ok := strings.Cut(rest, ":")
	server, err := url.PathUnescape(id)
	if !ok || err != nil || server == "" || uri == "" {
		return target{}, false
	}
	return target{schema.ServerID(server), uri}, true
}

// resource finds the server of a URI and the URI that it goes by there. Where several
// servers have it the fault lists the URIs to choose from; where none is known the target
// is empty.
func (ls *lists) resource(x *exchange, uri string) (target, *fault) {
	if ofServer(x.mount) {
		return target{schema.ServerID(x.mount), uri}, nil
	}
	v := ls.seen(x)
	if to, ok := splitURI(uri); ok && (v.has(to.server) || ls.denied(x, to.server)) {
		return to, nil
	}
	servers := v.serversOf[uri]
	if len(servers) == 0 {
		for _, p := range v.patterns {
			if p.match.MatchString(uri) && !slices.Contains(servers, p.server) {
				servers = append(servers, p.server)
			}
		}
	}
	switch len(servers) {
	case 0:
		return target{}, nil
	case 1:
		return target{servers[0], uri}, nil
	}
	var own []string
	for _, server := range servers {
		own = append(own, ownURI(server, uri))
	}
	data, err := json.Marshal(struct {
		URI   string   `json:"uri"`
		OneOf []string `json:"oneOf"`
	}{uri, own})
	if err != nil {
		data = nil // texts always marshal
	}
	return target{}, &fault{Code: mcpwire.CodeInvalidParams, Message: "Several servers have this resource. Read one of: " + strings.Join(own, ", "), Data: data}
}

// denied reports whether a server is not shown because the policy denies its resources: the gate
// says why, in the words of the policy.
func (ls *lists) denied(x *exchange, server schema.ServerID) bool {
	return x.principal.MayCall(server, "") == nil && ls.view(ls.place(x)).has(server)
}

func (ls *lists) prompt(x *exchange, name string) (target, bool) {
	if ofServer(x.mount) {
		return target{schema.ServerID(x.mount), name}, true
	}
	to, ok := ls.seen(x).promptOf[name]
	return to, ok
}

// template finds the server of a template, or of a URI that a template makes, as
// [lists.resource] does.
func (ls *lists) template(x *exchange, template string) (target, *fault) {
	if !ofServer(x.mount) {
		if servers := ls.seen(x).templatesOf[template]; len(servers) == 1 {
			return target{servers[0], template}, nil
		}
	}
	return ls.resource(x, template)
}

// has reports whether a server is part of the view.
func (v *view) has(server schema.ServerID) bool {
	return slices.ContainsFunc(v.servers, func(p *serverLists) bool { return p.server == server })
}

// gatherURIs adds resources or templates, whose URI is the value of member. Those that
// several servers have are offered under URIs of their own.
func gatherURIs(lists []*serverLists, member string, of func(*serverLists) []json.RawMessage, bare bool) (items []item, servers map[string][]schema.ServerID) {
	servers = make(map[string][]schema.ServerID)
	for _, p := range lists {
		for _, raw := range of(p) {
			if uri := getString(raw, member); uri != "" && !slices.Contains(servers[uri], p.server) {
				servers[uri] = append(servers[uri], p.server)
			}
		}
	}
	for _, p := range lists {
		seen := make(map[string]bool)
		for _, raw := range of(p) {
			uri := getString(raw, member)
			if uri == "" || seen[uri] {
				continue
			}
			seen[uri] = true
			text := []byte(raw)
			if !bare && len(servers[uri]) > 1 {
				text = withMember(raw, member, quote(ownURI(p.server, uri)))
			}
			items = append(items, item{string(p.server) + "\x00" + uri, text, target{p.server, uri}})
		}
	}
	return items, servers
}

// withMember returns the object with another value of a member.
func withMember(object []byte, name string, value []byte) []byte {
	out := []byte{'{'}
	each(object, func(key string, old []byte) {
		if key == name {
			old = value
		}
		out = appendMember(out, key, old)
	})
	return append(out, '}')
}

// readAs returns the result of resources/read with the URI that the client asked for in
// place of the one that the server knows. A result of another shape stays as it is.
func readAs(result []byte, from, to string) []byte {
	contents := get(result, "contents")
	var all []json.RawMessage
	if from == to || json.Unmarshal(contents, &all) != nil {
		return result
	}
	for i, one := range all {
		if getString(one, "uri") == from {
			all[i] = withMember(one, "uri", quote(to))
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return result // what was read is written as it was
	}
	return withMember(result, "contents", text)
}
