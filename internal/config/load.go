package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

// Source says where a configuration comes from.
type Source struct {
	// Path is the YAML file; "" means that there is none.
	Path string
	// Env is the environment, as os.Environ returns it.
	Env []string
	// Flags are settings of the command line; they win over everything else.
	Flags []Flag
	// Ignore names CALLYARD_… variables that are no keys, such as those of the
	// client commands; a name that ends in "*" stands for all that begin so.
	Ignore []string
	// Others are the keys at the root of the file that belong to other processes
	// which read the same file; neither they nor their variables are looked at.
	Others []string
}

// Flag is one setting of the command line.
type Flag struct {
	Name  string // for faults, such as "--listen"
	Path  string // the key that it sets, such as "front_door.listen"
	Value string // in the form of a variable
}

const maxConfigFile = 1 << 20

// Places says where keys were set.
type Places map[string]place

// Of returns where the key at path, or the nearest key above it, was set:
// "file:line:column", a variable, a flag, or "" for one that was not.
func (p Places) Of(path string) string { return p.find(path).String() }

// Has reports whether the key at path itself was set.
func (p Places) Has(path string) bool {
	_, ok := p[path]
	return ok
}

// find returns where a path was set, or where the nearest one above it was.
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

// Load fills into, which holds the defaults, from the source. It is a pointer to
// a struct whose fields are the sections, or a map[string]any of section names to
// such pointers. Lists and maps that are given replace their default as a whole.
//
// The error is a *Faults with everything that is wrong; another type means that
// into itself cannot be filled, a mistake in the program. After an error into
// holds the parts that could be read and must not be used.
//
// It returns where each key was set, also when there is an error.
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
		misplaced: func(key string) string {
			for _, s := range settings {
				if strings.HasSuffix(s.path, "."+key) {
					return s.path
				}
			}
			return ""
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
	// Where the file cannot be read, every key that must be set seems to be missing.
	if whole {
		d.validate(into, sections)
	}
	return d.places, faults.err()
}

// applyText sets one key from the text of a variable or flag.
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

// commaList splits the text of a variable into a list of texts.
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
