package config

import "github.com/callyard/callyard/pkg/risk/yamldoc"

// parseYAML parses a YAML document into nodes. It returns nil if there are only comments. ok is
// false if the document cannot be parsed; faults has the reason.
func parseYAML(source string, data []byte, faults *report) (root *node, ok bool) {
	y := yamlFile{source: source, nodes: map[*yamldoc.Node]*node{}}
	doc, ok := yamldoc.Parse(data, yamldoc.Options{
		MaxDepth:   maxDepth,
		References: true,
		Report:     func(at yamldoc.Position, format string, args ...any) { faults.add(y.at(at), "", format, args...) },
	})
	if doc == nil {
		return nil, ok
	}
	return y.node(doc), true
}

type yamlFile struct {
	source string
	nodes  map[*yamldoc.Node]*node // an alias has the node of its anchor
}

func (y *yamlFile) at(p yamldoc.Position) place {
	return place{source: y.source, line: p.Line, column: p.Column}
}

func (y *yamlFile) node(from *yamldoc.Node) *node {
	if n, ok := y.nodes[from]; ok {
		return n
	}
	n := &node{kind: from.Kind, at: y.at(from.At), text: from.Text}
	y.nodes[from] = n
	for _, item := range from.Items {
		n.items = append(n.items, y.node(item))
	}
	for _, m := range from.Members {
		n.members = append(n.members, member{key: m.Key, at: y.at(m.At), value: y.node(m.Value)})
	}
	return n
}
