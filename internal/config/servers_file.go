package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

// maxServersFile is large because some programs keep their history in the same file.
const maxServersFile = 16 << 20

// LoadServers reads a file of MCP servers in the format of Claude Desktop, Claude Code, Cursor and
// MCP Bridge (mcpServers) or VS Code (servers), as JSON with comments and trailing commas. Then it
// applies the MCP_SERVER_… variables of MCP Bridge in env. If path is empty, only the variables
// count. A relative path in the file stays unchanged. The error is a *Faults with all faults.
func LoadServers(path string, env []string) (Servers, error) {
	r := newServerReader(path, env)
	if path != "" {
		if data, err := readText(path, maxServersFile); err != nil {
			r.faults.add(place{source: path}, "", "%v", err)
		} else {
			r.file(path, data)
		}
	}
	r.variables()
	return r.servers()
}

// servers checks all collected entries.
func (r *serverReader) servers() (Servers, error) {
	r.read = report{list: r.faults.list}
	var servers Servers
	for _, d := range r.drafts {
		if d.disabled {
			continue
		}
		servers.Entries = append(servers.Entries, r.finish(d))
	}
	if err := r.faults.err(); err != nil {
		return Servers{}, err
	}
	servers.Notes = r.notes
	return servers, nil
}

// serverReader collects servers from a file and from variables.
type serverReader struct {
	path   string // of the file; "" if there is none
	faults *report
	read   report // faults of parsing, before settings are checked together
	vars   variables
	decode *decoder
	drafts []*draft
	notes  []string
}

// draft is a server whose settings have not been checked together yet.
type draft struct {
	id       string
	path     string // for faults, such as mcpServers.github
	at       place
	shape    entryShape
	set      map[string]place // the keys that were given
	disabled bool
}

func newServerReader(path string, env []string) *serverReader {
	r := &serverReader{path: path, faults: &report{}, vars: environment(env)}
	r.decode = &decoder{faults: r.faults, places: Places{}, expand: &expander{vars: r.vars, special: clientForms(path, r.vars)}}
	return r
}

// file reads the root of the file. Other programs may keep other keys there.
func (r *serverReader) file(path string, data []byte) {
	root := parseJSON(place{source: path}, "", data, r.faults)
	if root == nil {
		return
	}
	if root.kind != yamldoc.Map {
		r.faults.add(root.at, "", "the file must contain a JSON object, not %s; begin it with {\"mcpServers\": {…}}.", root.kind)
		return
	}
	ours, theirs := root.get("mcpServers"), root.get("servers")
	switch {
	case ours != nil && theirs != nil:
		r.faults.add(theirs.at, "", "the file has both mcpServers and servers; keep one of them.")
	case ours == nil && theirs == nil:
		r.faults.add(root.at, "", "the file has neither mcpServers nor servers%s", rootFix(root))
	}
	for i, m := range root.members {
		if m.key != "mcpServers" && m.key != "servers" {
			continue
		}
		if first := root.get(m.key); first != &root.members[i] {
			r.faults.add(m.at, m.key, "the key occurs twice, first in line %d; remove one of them.", first.at.line)
			continue
		}
		r.list(m.key, m.value)
	}
}

// rootFix returns the fix for a root without servers.
func rootFix(root *node) string {
	for _, m := range root.members {
		if near := yamldoc.Nearest(m.key, []string{"mcpServers", "servers"}); near != "" {
			return "; did you mean \"" + near + "\" where it has " + quote(m.key) + "?"
		}
		if m.value.kind == yamldoc.Map && (m.value.get("servers") != nil || m.value.get("mcpServers") != nil) {
			return "; they are inside " + quote(m.key) + ", move them to the root of a file of their own."
		}
		if m.value.kind == yamldoc.Map && (m.value.get("command") != nil || m.value.get("url") != nil) {
			return "; put the servers into {\"mcpServers\": {…}}."
		}
	}
	return "; list the servers in {\"mcpServers\": {…}}."
}

func (r *serverReader) list(path string, n *node) {
	if n.kind == yamldoc.List {
		r.unnamed(path, n)
		return
	}
	if n.kind != yamldoc.Map {
		r.faults.add(n.at, path, "must be a map of server names to their settings, or a list of servers, not %s.", n.kind)
		return
	}
	if len(n.members) == 0 {
		r.note(n.at, "there are no servers in %s", path)
	}
	r.faults.duplicates(path, n)
	done := map[string]bool{}
	for _, m := range n.members {
		if !done[m.key] {
			done[m.key] = true
			r.entry(joinName(path, m.key), m)
		}
	}
}

// unnamed reads a list of servers. The name of each is its id, or else its name.
func (r *serverReader) unnamed(root string, n *node) {
	if len(n.items) == 0 {
		r.note(n.at, "there are no servers in %s", root)
	}
	seen := map[string]place{}
	for i, item := range n.items {
		path := root + "[" + strconv.Itoa(i) + "]"
		if item.kind != yamldoc.Map {
			r.faults.add(item.at, path, "must be a map with \"id\" and \"command\" or \"url\", not %s.", item.kind)
			continue
		}
		key := "id"
		if item.get(key) == nil {
			key = "name"
		}
		name := item.get(key)
		switch {
		case name == nil:
			r.faults.add(item.at, path, "the server has no name; add \"id\".")
			continue
		case name.value.kind != yamldoc.Text:
			r.faults.add(name.at, join(path, key), "must be a string, the name of the server, not %s.", name.value.kind)
			continue
		}
		id := name.value.text
		if first, ok := seen[id]; ok {
			r.faults.add(name.at, join(path, key), "the server %s occurs twice, first in line %d; remove one of them.", quote(id), first.line)
			continue
		}
		seen[id] = name.at
		rest := &node{kind: item.kind, at: item.at}
		for i := range item.members {
			switch m := &item.members[i]; {
			case m.key != key:
				rest.members = append(rest.members, *m)
			case m != name:
				r.faults.add(m.at, join(path, key), "the key occurs twice, first in line %d; remove one of them.", name.at.line)
			}
		}
		r.entry(path, member{key: id, at: name.at, value: rest})
	}
}

func (r *serverReader) entry(path string, m member) {
	d := &draft{id: m.key, path: path, at: m.at, set: map[string]place{}}
	if fault := idFault(m.key); fault != "" {
		r.faults.add(m.at, "", "the server name %s %s", quote(m.key), fault)
	}
	if m.value.kind != yamldoc.Map {
		r.faults.add(m.value.at, d.path, "must be a map with \"command\" or \"url\", not %s.", m.value.kind)
		return
	}
	r.drafts = append(r.drafts, d)
	r.faults.duplicates(d.path, m.value)
	if d.disabled = isDisabled(m.value); d.disabled {
		r.note(m.at, "server %q is disabled and skipped", m.key)
		return
	}
	known := r.known(d, m.value)
	r.decode.decode(d.path, known, reflect.ValueOf(&d.shape).Elem())
	for _, key := range known.members {
		d.set[key.key] = key.at
	}
}

// isDisabled checks the two ways to disable a server before the rest of the entry is read, because
// the variables of a disabled server need not be set.
func isDisabled(n *node) bool {
	disabled, enabled := n.get("disabled"), n.get("enabled")
	return disabled != nil && disabled.value.kind == yamldoc.Bool && disabled.value.text == "true" ||
		enabled != nil && enabled.value.kind == yamldoc.Bool && enabled.value.text == "false"
}

// known returns the entry without the keys of other programs, which get a note, and reports keys
// of other programs that have an equivalent here. It keeps the first of duplicate keys. Programs
// write null for unset values; null is a fault only for a key that sets a risk or disables
// something.
func (r *serverReader) known(d *draft, n *node) *node {
	out := &node{kind: yamldoc.Map, at: n.at}
	var ignored []string
	for _, m := range n.members {
		switch fix := meantKeys[m.key]; {
		case out.get(m.key) != nil:
		case m.value.kind == yamldoc.Null && !slices.Contains([]string{"riskLevel", "disabled", "enabled", "docker", "sandbox"}, m.key):
		case fix != "":
			r.faults.add(m.at, join(d.path, m.key), "is a key of another program; %s", fix)
			if fix == meantKeys["serverUrl"] { // do not report it as missing as well
				out.members = append(out.members, member{key: "url", at: m.at, value: m.value})
			}
		case slices.Contains(foreignKeys[:], m.key) || strings.HasPrefix(m.key, "//") || strings.HasPrefix(m.key, "_"):
			if !slices.Contains(ignored, m.key) {
				ignored = append(ignored, m.key)
			}
		case m.key == "env" && m.value.kind == yamldoc.Map:
			out.members = append(out.members, member{key: m.key, at: m.at, value: r.withoutNulls(d, m.value)})
		default:
			out.members = append(out.members, m)
		}
	}
	if len(ignored) > 0 {
		r.note(d.at, "server %q has keys of other programs, which are ignored: %s", d.id, strings.Join(ignored, ", "))
	}
	return out
}

// withoutNulls removes the variables that VS Code unsets with null. A server gets only listed
// variables anyway.
func (r *serverReader) withoutNulls(d *draft, env *node) *node {
	out := &node{kind: yamldoc.Map, at: env.at}
	for _, m := range env.members {
		if m.value.kind == yamldoc.Null {
			r.note(m.at, "the variable %s of server %q is null and is not set", shorten(m.key), d.id)
			continue
		}
		out.members = append(out.members, m)
	}
	return out
}

func (r *serverReader) note(at place, format string, args ...any) {
	r.notes = append(r.notes, Fault{Where: at.String(), Message: Faultf("", format, args...).Message}.String()+".")
}
