package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

// Source is the origin of a configuration.
type Source struct {
	// Path is the YAML file. If empty, there is none.
	Path string
	// Env is the environment, as os.Environ returns it.
	Env []string
	// Flags are command-line settings. They override everything else.
	Flags []Flag
	// Ignore names CALLYARD_… variables that are not keys, such as those of the client commands. A
	// name that ends in "*" is a prefix.
	Ignore []string
	// Others are root keys that belong to other processes that read the same file. These keys and
	// their variables are ignored.
	Others []string
}

// Flag is one command-line setting.
type Flag struct {
	Name  string // for faults, such as "--listen"
	Path  string // the key that it sets, such as "front_door.listen"
	Value string // in the syntax of a variable
}

const maxConfigFile = 1 << 20

// Places maps each key to the place where it was set.
type Places map[string]place

// Of returns the place where the key at path, or the nearest key above it, was set:
// "file:line:column", a variable or a flag. It returns "" if none was set.
func (p Places) Of(path string) string { return p.find(path).String() }

// Has reports whether the key at path itself was set.
func (p Places) Has(path string) bool {
	_, ok := p[path]
	return ok
}

// find returns the place where path, or the nearest path above it, was set.
func (p Places) find(path string) place {
	for {
		if at, ok := p[path]; ok {
			return at
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return p[""]
		}
		path = path[:i]
	}
}

// Load reads the source into into, which holds the defaults. into is a pointer to a struct whose
// fields are the sections, or a map[string]any of section names to such pointers. A list or map
// in the source replaces the whole default.
//
// The error is a *Faults with all faults. Any other type means that into itself cannot be
// filled, which is a bug of the program. After an error, into holds the settings that could be
// read; do not use it.
//
// Load returns the place of each key that was set, also with an error.
func Load(src Source, into any) (Places, error) {
	sections, settings, err := keysOf(into)
	if err != nil {
		return nil, err
	}
	faults := &report{}
	d := &decoder{
		faults: faults,
		expand: &expander{vars: environment(src.Env)},
		places: Places{},
		misplaced: func(key string) (paths []string) {
			for _, s := range settings {
				if strings.HasSuffix(s.path, "."+key) {
					paths = append(paths, s.path)
				}
			}
			return paths
		},
	}
	whole := true
	if src.Path != "" {
		whole = false
		d.places[""] = place{source: src.Path}
		data, err := readText(src.Path, maxConfigFile)
		if err != nil {
			faults.add(place{source: src.Path}, "", "%v", err)
		} else {
			var root *node
			root, whole = parseYAML(src.Path, data, faults)
			if root != nil {
				d.members("", root, sections, src.Others)
			}
		}
	}
	d.applyEnv(src, settings)
	for _, flag := range src.Flags {
		i := slices.IndexFunc(settings, func(s setting) bool { return s.path == flag.Path })
		if i < 0 {
			return nil, fmt.Errorf("config: the flag %s sets %s, which is not a key", flag.Name, flag.Path)
		}
		d.applyText(place{layer: layerFlag, source: flag.Name}, &settings[i], flag.Value, false)
	}
	// If the file could not be read, every required key would seem to be missing.
	if whole {
		d.validate(into, sections)
	}
	return d.places, faults.err()
}

// applyText sets one key from the text of a variable or a flag.
func (d *decoder) applyText(at place, s *setting, text string, hidden bool) {
	var n *node
	t := s.typ
	for t.Kind() == reflect.Pointer && !isText(t) {
		t = t.Elem()
	}
	trimmed := strings.TrimSpace(text)
	switch {
	case isText(t):
	case t.Kind() == reflect.Slice && !strings.HasPrefix(trimmed, "["):
		n = commaList(at, trimmed)
		if elem := t.Elem(); trimmed != "" && !isText(elem) && (elem.Kind() == reflect.Struct || elem.Kind() == reflect.Map) {
			d.faults.add(at, s.path, "must be a JSON list here, such as [{…}].")
			return
		}
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Map,
		t.Kind() == reflect.Interface && strings.HasPrefix(trimmed, "{"):
		if trimmed == "" {
			n = &node{kind: yamldoc.Null, at: at}
			break
		}
		if n = parseJSON(at, s.path, []byte(trimmed), d.faults); n == nil {
			return
		}
		n.freeze()
	case t.Kind() != reflect.String && t.Kind() != reflect.Interface && trimmed == "":
		d.empty(s.path, &node{at: at})
		return
	}
	if n == nil {
		n = &node{kind: yamldoc.Text, at: at, text: text, loose: true, literal: true, hidden: hidden}
	}
	d.decode(s.path, n, s.value())
}

// commaList splits the text of a variable at its commas.
func commaList(at place, text string) *node {
	list := &node{kind: yamldoc.List, at: at}
	if text == "" {
		return list
	}
	for item := range strings.SplitSeq(text, ",") {
		list.items = append(list.items, &node{kind: yamldoc.Text, at: at, text: strings.TrimSpace(item), loose: true, literal: true})
	}
	return list
}
