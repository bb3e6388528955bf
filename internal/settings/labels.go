package settings

import (
	"fmt"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/search"
	"github.com/callyard/callyard/pkg/risk"
)

// ToolLabel adds words to the tools that it matches.
type ToolLabel struct {
	// Server and Tool are name patterns: "*" matches any characters. "" matches every name.
	Server string `yaml:"server"`
	Tool   string `yaml:"tool"`
	// Tags are categories, such as "billing".
	Tags []string `yaml:"tags"`
	// Aliases are other names of the tools.
	Aliases []string `yaml:"aliases"`
}

// ToolLabels are all labels of the configuration.
type ToolLabels []ToolLabel

// Of returns a function that returns the labels of a tool from all matching entries. It returns
// nil if there are no entries.
func (l ToolLabels) Of() func(server, tool string) search.Labels {
	if len(l) == 0 {
		return nil
	}
	return func(server, tool string) (all search.Labels) {
		for i := range l {
			e := &l[i]
			if (e.Server == "" || risk.MatchPattern(e.Server, server)) && (e.Tool == "" || risk.MatchPattern(e.Tool, tool)) {
				all.Tags, all.Aliases = append(all.Tags, e.Tags...), append(all.Aliases, e.Aliases...)
			}
		}
		return all
	}
}

func (l ToolLabels) validate(faults *config.Collector) {
	for i := range l {
		if len(l[i].Tags)+len(l[i].Aliases) == 0 {
			faults.Addf(fmt.Sprintf("tool_labels[%d]", i), "has no words. Give it tags or aliases.")
		}
	}
}
