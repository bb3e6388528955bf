package mcp

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

// At /mcp the resources of all servers are in one list. A URI that several servers list would be
// ambiguous, so each of these resources gets its own URI: "callyard:SERVER:URI", with the server
// ID percent-encoded. The same holds for templates. Such a URI can be read even if the URI in it
// is not ambiguous at the moment, so that a URI that a client has saved remains valid.
const ownScheme = "callyard:"

// ownURI returns the URI, or the template, for the resource of one server at /mcp.
func ownURI(server schema.ServerID, uri string) string {
	return ownScheme + strings.ReplaceAll(url.PathEscape(string(server)), ":", "%3A") + ":" + uri
}

// splitURI is the inverse of ownURI. It returns false for other URIs.
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

// resource finds the server of a URI and the URI that this server uses. If several servers have
// it, the fault lists the URIs to choose from. If none is known, the target is empty.
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

// denied reports whether a server is hidden because the policy denies its resources. The gate
// then returns the reason of the policy.
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

// template finds the server of a template, or of a URI that matches a template, as
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

// gatherURIs collects resources or templates; member holds the URI. Those that several servers
// have get their own URIs; see [ownURI].
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
			items = append(items, item{name: string(p.server) + "\x00" + uri, raw: text, of: target{p.server, uri}})
		}
	}
	return items, servers
}

// withMember returns the object with the value of a member replaced.
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

// readAs returns the result of resources/read with the server's URI replaced by the URI that the
// client requested. A result of another shape is unchanged.
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
		return result // a value that was parsed can always be written
	}
	return withMember(result, "contents", text)
}
