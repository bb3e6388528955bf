package config

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

const (
	serverPrefix  = "MCP_SERVER_"
	pathVariable  = "MCP_CONFIG_PATH"
	portVariable  = "PORT"
	commandSuffix = "_COMMAND"
)

// serverSuffixes maps the suffixes of MCP Bridge's variables to keys.
var serverSuffixes = [...]struct{ suffix, key string }{
	{commandSuffix, "command"}, {"_ARGS", "args"}, {"_ENV", "env"}, {"_RISK_LEVEL", "riskLevel"}, {"_DOCKER_CONFIG", "docker"},
}

// FindServersFile returns the path of the servers file: the flag if it is set, otherwise the value
// of MCP_CONFIG_PATH in env, otherwise "".
func FindServersFile(flag string, env []string) string {
	if flag != "" {
		return flag
	}
	return environment(env)[pathVariable]
}

// Port returns the value of the variable PORT in env. ok is false if it is not set. The error is
// a *Faults.
func Port(env []string) (port string, ok bool, err error) {
	value := strings.TrimSpace(environment(env)[portVariable])
	if value == "" {
		return "", false, nil
	}
	if n, err := strconv.ParseUint(value, 10, 16); err != nil || n == 0 {
		faults := &report{}
		faults.add(place{layer: layerEnv, source: portVariable}, "", "must be a port from 1 to 65535; correct or unset it.")
		return "", false, faults.err()
	}
	return value, true, nil
}

// variables applies MCP_SERVER_<NAME>_… to the drafts. An empty variable counts as not set.
func (r *serverReader) variables() {
	// bridge holds the variables of each NAME by the key that they set.
	bridge := map[string]map[string]string{}
	var others []string
	for _, name := range slices.Sorted(maps.Keys(r.vars)) {
		rest, ok := strings.CutPrefix(name, serverPrefix)
		if !ok || r.vars[name] == "" {
			continue
		}
		matched := false
		for _, s := range serverSuffixes {
			if server, ok := strings.CutSuffix(rest, s.suffix); ok && server != "" {
				if bridge[server] == nil {
					bridge[server] = map[string]string{}
				}
				bridge[server][s.key] = name
				matched = true
			}
		}
		if !matched {
			others = append(others, rest)
		}
	}
	for _, server := range slices.Sorted(maps.Keys(bridge)) {
		r.override(server, bridge[server])
	}
	r.misspelt(others)
}

// override adds or replaces a server, or changes single keys of one.
func (r *serverReader) override(server string, byKey map[string]string) {
	var matches []*draft
	for _, d := range r.drafts {
		if variableName(d.id) == server {
			matches = append(matches, d)
		}
	}
	first := place{layer: layerEnv, source: byKey[slices.Sorted(maps.Keys(byKey))[0]]}
	if len(matches) > 1 {
		r.faults.add(first, "", "the servers %q and %q both match %s; rename one of them.", matches[0].id, matches[1].id, serverPrefix+server)
		return
	}
	var d *draft
	if len(matches) == 1 {
		d = matches[0]
	}
	command, whole := byKey["command"]
	switch {
	case d == nil && !whole:
		r.faults.add(first, "", "no server in the file matches this name, and %s is not set; set it, or correct the name.", serverPrefix+server+commandSuffix)
		return
	case d != nil && d.disabled:
		r.note(first, "the server %q is disabled in the file, so its variables are not used", d.id)
		return
	case d == nil:
		d = &draft{id: strings.ToLower(server)}
		if fault := idFault(d.id); fault != "" {
			r.faults.add(first, "", "the server name %s %s", quote(d.id), fault)
		}
		d.path = joinName("mcpServers", d.id)
		r.drafts = append(r.drafts, d)
		r.replace(d, place{layer: layerEnv, source: command})
	case whole:
		r.replace(d, place{layer: layerEnv, source: command})
		r.note(d.at, "this variable replaces server %q of the file; its risk, container and labels are kept", d.id)
	}
	for _, s := range serverSuffixes {
		if name, ok := byKey[s.key]; ok {
			r.variable(d, s.key, name)
		}
	}
}

// replace resets the draft. It keeps the limits of the server, because a variable that names
// another command must not lower the risk, and drops settings that trust the server.
func (r *serverReader) replace(d *draft, at place) {
	old := *d
	*d = draft{id: old.id, path: old.path, at: at, set: map[string]place{}}
	d.shape.RiskLevel, d.shape.Docker, d.shape.Labels = old.shape.RiskLevel, old.shape.Docker, old.shape.Labels
	for _, key := range []string{"riskLevel", "docker", "labels"} {
		if where, ok := old.set[key]; ok {
			d.set[key] = where
		}
	}
}

// variable sets one key of a draft from a variable.
func (r *serverReader) variable(d *draft, key, name string) {
	at := place{layer: layerEnv, source: name}
	value := r.vars[name]
	var n *node
	switch key {
	case "args":
		if strings.HasPrefix(strings.TrimSpace(value), "[") {
			// A list whose arguments contain commas can be JSON. Text that only starts like JSON is a
			// plain list.
			n = parseJSON(at, "", []byte(value), &report{})
		}
		if n == nil {
			n = commaList(at, strings.TrimSpace(value))
		}
	case "env", "docker":
		if n = parseJSON(at, join(d.path, key), []byte(value), r.faults); n == nil {
			d.set[key] = at
			return
		}
		if n.kind != yamldoc.Map {
			r.faults.add(at, join(d.path, key), "must be a JSON object, such as {\"NAME\": \"value\"}.")
			return
		}
	default:
		n = &node{kind: yamldoc.Text, at: at, text: value, loose: true}
	}
	n.freeze()
	if key == "docker" { // the whole section, not single keys
		d.shape.Docker = nil
	}
	d.set[key] = at
	r.decode.members(d.path, &node{kind: yamldoc.Map, members: []member{{key: key, at: at, value: n}}}, sectionsIn(reflect.ValueOf(&d.shape).Elem()), nil)
}

// misspelt reports variables that start with the name of a server but have an unknown suffix,
// because a misspelt risk level must not be ignored. It assumes that all other variables with the
// prefix belong to other programs.
func (r *serverReader) misspelt(rests []string) {
	suffixes := make([]string, len(serverSuffixes))
	for i, s := range serverSuffixes {
		suffixes[i] = s.suffix
	}
	for _, rest := range rests {
		for _, d := range r.drafts {
			suffix, ok := strings.CutPrefix(rest, variableName(d.id))
			if !ok || !strings.HasPrefix(suffix, "_") {
				continue
			}
			fix := "the variables of a server end in " + strings.Join(suffixes, ", ") + "."
			if near := yamldoc.Nearest(suffix, suffixes); near != "" {
				fix = "did you mean " + strings.TrimSuffix(serverPrefix+rest, suffix) + near + "?"
			}
			r.faults.add(place{layer: layerEnv, source: serverPrefix + rest}, "", "server %q does not have this setting; %s", d.id, fix)
			break
		}
	}
}

// variableName returns the NAME of MCP_SERVER_<NAME>_… for a server id.
func variableName(id string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, strings.ToUpper(id))
}
