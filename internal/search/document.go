package search

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/callyard/callyard/pkg/schema"
)

// field is a part of a tool's document. Each has a weight and an average length.
type field int

const (
	inName field = iota
	inTitle
	inServer
	inDescription
	inParameters
	inLabels // tags and aliases
	fields
)

// Labels are words for a tool in addition to its definition.
type Labels struct {
	Tags    []string // categories, such as "billing"
	Aliases []string // other names of the tool
}

// Limits of the indexed part of a definition.
const (
	maxParameters = 256
	maxLabels     = 64
	// describedWeight is the weight of a word in the description of a parameter, relative to one in
	// its name.
	describedWeight = 0.5
)

// terms holds the words of one tool with their frequency in each field, and the lengths of the fields.
type terms struct {
	words   map[string]*[fields]float32
	lengths [fields]float32
}

func (t *terms) add(in field, text string, weight float32) {
	words(text, true, func(word string) {
		n := t.words[word]
		if n == nil {
			n = new([fields]float32)
			t.words[word] = n
		}
		n[in] += weight
		t.lengths[in] += weight
	})
}

// termsOf returns the words of a tool.
func termsOf(tool *schema.Tool, labels Labels) *terms {
	var def struct {
		Title, Description string
		Annotations        struct{ Title string }
		InputSchema        struct {
			Properties map[string]json.RawMessage
		}
		Meta struct{ Aliases []string } `json:"_meta"`
	}
	_ = json.Unmarshal(tool.Raw, &def) // members of another type are ignored
	t := &terms{words: make(map[string]*[fields]float32)}
	t.add(inName, tool.Name, 1)
	t.add(inServer, string(tool.Server), 1)
	t.add(inTitle, def.Title, 1)
	if def.Annotations.Title != def.Title {
		t.add(inTitle, def.Annotations.Title, 1)
	}
	t.add(inDescription, def.Description, 1)
	names := slices.Sorted(maps.Keys(def.InputSchema.Properties))
	for _, name := range names[:min(len(names), maxParameters)] {
		var p struct{ Description string }
		_ = json.Unmarshal(def.InputSchema.Properties[name], &p)
		t.add(inParameters, name, 1)
		t.add(inParameters, p.Description, describedWeight)
	}
	all := slices.Concat(labels.Tags, labels.Aliases, tool.Tags, def.Meta.Aliases)
	for _, label := range all[:min(len(all), maxLabels)] {
		t.add(inLabels, label, 1)
	}
	return t
}
