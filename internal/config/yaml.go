package config

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// parseYAML turns a YAML document into nodes: nil where there is nothing but
// comments. ok is false where it cannot be read at all; faults say why.
func parseYAML(source string, data []byte, faults *report) (root *node, ok bool) {
	y := &yamlReader{source: source, faults: faults, anchors: map[string]*node{}}
	file := y.parse(data)
	if file == nil {
		return nil, false
	}
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil || doc.Body.Type() == ast.CommentType || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if root != nil {
			y.faults.add(y.convert(doc.Body).at, "", "the file holds a second document; put everything into one, without a line of ---.")
			break
		}
		root = y.convert(doc.Body)
	}
	return root, true
}

type yamlReader struct {
	source  string
	faults  *report
	anchors map[string]*node
}

// parse runs the YAML parser. Its panics and its recursion are kept from the
// caller: a configuration file must never be able to end the process.
func (y *yamlReader) parse(data []byte) (file *ast.File) {
	defer func() {
		if recover() != nil {
			file = nil
			y.faults.add(place{source: y.source}, "", "the file cannot be read as YAML; check its indentation and quotes.")
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if deep := tooDeep(tokens); deep != nil {
		y.fault(deep, "the file is nested more than %d levels deep; write it flatter.", maxDepth)
		return nil
	}
	// Keys given twice are reported with everything else, not by the parser.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err == nil {
		return file
	}
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		y.fault(syntax.GetToken(), "the file is not valid YAML here: %s; check the indentation and the quotes.", syntax.GetMessage())
	} else {
		y.faults.add(place{source: y.source}, "", "the file is not valid YAML; check its indentation and quotes.")
	}
	return nil
}

// tooDeep returns the token at which the nesting passes the bound. Block
// nesting costs indentation, so only what nests within one line is counted.
func tooDeep(tokens token.Tokens) *token.Token {
	flow, marks, line := 0, 0, 0
	for _, tk := range tokens {
		if tk.Position != nil && tk.Position.Line != line {
			line, marks = tk.Position.Line, 0
		}
		switch tk.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType, token.TagType, token.AnchorType:
			marks++
		case token.MappingValueType:
			if flow == 0 {
				marks++
			}
		case token.CollectEntryType:
			marks = 0
		}
		if flow > maxDepth || marks > maxDepth {
			return tk
		}
	}
	return nil
}

func (y *yamlReader) at(tk *token.Token) place {
	p := place{source: y.source}
	if tk != nil && tk.Position != nil {
		p.line, p.column = tk.Position.Line, tk.Position.Column
	}
	return p
}

func (y *yamlReader) fault(tk *token.Token, format string, args ...any) {
	y.faults.add(y.at(tk), "", format, args...)
}

func (y *yamlReader) convert(n ast.Node) *node {
	switch n := n.(type) {
	case nil:
		return &node{kind: kindNull, at: place{source: y.source}}
	case *ast.NullNode:
		return &node{kind: kindNull, at: y.at(n.GetToken())}
	case *ast.BoolNode:
		return y.scalar(n, kindBool)
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return y.scalar(n, kindNumber)
	case *ast.StringNode:
		return &node{kind: kindText, at: y.at(n.GetToken()), text: n.Value}
	case *ast.LiteralNode:
		return &node{kind: kindText, at: y.at(n.GetToken()), text: n.Value.Value}
	case *ast.SequenceNode:
		list := &node{kind: kindList, at: y.at(n.GetToken())}
		for _, item := range n.Values {
			list.items = append(list.items, y.convert(item))
		}
		return list
	case *ast.MappingNode:
		return y.mapping(n.GetToken(), n.Values)
	case *ast.MappingValueNode:
		return y.mapping(n.Key.GetToken(), []*ast.MappingValueNode{n})
	case *ast.AnchorNode:
		value := y.convert(n.Value)
		if n.Name != nil {
			y.anchors[n.Name.GetToken().Value] = value
		}
		return value
	case *ast.AliasNode:
		if n.Value != nil {
			if value, ok := y.anchors[n.Value.GetToken().Value]; ok {
				return value
			}
		}
		y.fault(n.GetToken(), "the alias names no anchor above it; define it with &name first, or write the value out.")
		return &node{kind: kindBad, at: y.at(n.GetToken())}
	case *ast.TagNode:
		return y.tagged(n)
	}
	y.fault(n.GetToken(), "this form of YAML (%s) is not used here; write the value out.", n.Type())
	return &node{kind: kindBad, at: y.at(n.GetToken())}
}

// scalar keeps a number or bool as it was written.
func (y *yamlReader) scalar(n ast.Node, k kind) *node {
	return &node{kind: k, at: y.at(n.GetToken()), text: strings.TrimSpace(n.GetToken().Value)}
}

func (y *yamlReader) mapping(tk *token.Token, values []*ast.MappingValueNode) *node {
	m := &node{kind: kindMap, at: y.at(tk)}
	// The token of a map is its first colon; its first key is what people look for.
	if len(values) > 0 {
		m.at = y.at(values[0].Key.GetToken())
	}
	for _, value := range values {
		key, err := keyOf(value.Key)
		if err != nil {
			y.fault(value.Key.GetToken(), "%v", err)
			continue
		}
		m.members = append(m.members, member{key: key, at: y.at(value.Key.GetToken()), value: y.convert(value.Value)})
	}
	return m
}

func keyOf(key ast.MapKeyNode) (string, error) {
	switch key := key.(type) {
	case *ast.StringNode:
		return key.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		return key.GetToken().Value, nil
	case *ast.MergeKeyNode:
		return "", errors.New("merge keys (<<) are not used here; write the values out.")
	}
	return "", errors.New("a key must be a plain text; this one is not.")
}

func (y *yamlReader) tagged(n *ast.TagNode) *node {
	value := y.convert(n.Value)
	switch n.GetToken().Value {
	case "!!str":
		if value.kind == kindBool || value.kind == kindNumber {
			return &node{kind: kindText, at: value.at, text: value.text}
		}
	case "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq":
	default:
		// It may be a password that begins so; it is not repeated.
		y.fault(n.GetToken(), "a value that begins with ! is a tag in YAML, which is not used here; put the text in quotes.")
		return &node{kind: kindBad, at: value.at}
	}
	return value
}
