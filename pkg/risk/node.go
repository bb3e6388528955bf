package risk

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// kind is what a value looks like, before anybody asks what it should be.
type kind string

const (
	kindBad    kind = "a fault" // reported already
	kindNull   kind = "nothing"
	kindBool   kind = "true or false"
	kindNumber kind = "a number"
	kindText   kind = "a text"
	kindList   kind = "a list"
	kindMap    kind = "a map"
)

// node is one value of a source, with its place.
type node struct {
	kind kind
	at   position
	text string // scalars: as written; texts without quotes and escapes
	// indent is how many characters of the source stand before the text itself in
	// its first line, or -1 where the text is not one piece of one line.
	indent  int
	items   []*node
	members []member
}

type member struct {
	key   string
	at    position
	value *node
}

const (
	maxSource = 1 << 20
	maxDepth  = 64
)

// parseYAML turns a source into nodes. It returns nil after a fault of the whole,
// and kindNull for an empty source. It does not panic.
func parseYAML(source []byte, faults *report) *node {
	y := yamlReader{faults: faults}
	switch {
	case len(source) > maxSource:
		faults.add(position{}, "", "the file is larger than 1 MiB; it is likely not the file that was meant.")
		return nil
	case !utf8.Valid(source):
		faults.add(position{}, "", "the file is not UTF-8 text; save it as UTF-8.")
		return nil
	}
	file := y.parse(strings.TrimPrefix(string(source), "\ufeff"))
	if file == nil {
		return nil
	}
	root := &node{kind: kindNull, at: position{1, 1}}
	seen := false
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil || doc.Body.Type() == ast.CommentType || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		n := y.convert(doc.Body)
		if seen {
			faults.add(n.at, "", "the file holds a second document; put everything into one, without a line of ---.")
			break
		}
		root, seen = n, true
	}
	return root
}

type yamlReader struct{ faults *report }

func (y *yamlReader) parse(text string) (file *ast.File) {
	defer func() {
		if recover() != nil {
			file = nil
			y.faults.add(position{}, "", "the file cannot be read as YAML; check its indentation and quotes.")
		}
	}()
	tokens := lexer.Tokenize(text)
	if deep := tooDeep(tokens); deep != nil {
		y.faults.add(at(deep), "", "the file is nested more than %d levels deep; write it flatter.", maxDepth)
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err == nil {
		return file
	}
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		y.faults.add(at(syntax.GetToken()), "", "the file is not valid YAML here: %s; check the indentation and the quotes.", oneLine(syntax.GetMessage()))
	} else {
		y.faults.add(position{}, "", "the file is not valid YAML; check its indentation and quotes.")
	}
	return nil
}

// tooDeep returns the token at which the nesting passes the bound, because the
// parser recurses. Nesting over lines costs indentation and is bounded by it.
func tooDeep(tokens token.Tokens) *token.Token {
	flow, marks, line := 0, 0, 0
	for _, tk := range tokens {
		if tk.Position == nil {
			continue
		}
		if tk.Position.Line != line {
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
		if flow > maxDepth || marks > maxDepth || tk.Position.IndentNum > 40*maxDepth {
			return tk
		}
	}
	return nil
}

func at(tk *token.Token) position {
	if tk == nil || tk.Position == nil {
		return position{1, 1}
	}
	return position{tk.Position.Line, tk.Position.Column}
}

func (y *yamlReader) convert(n ast.Node) *node {
	switch n := n.(type) {
	case nil:
		return &node{kind: kindNull, at: position{1, 1}}
	case *ast.NullNode:
		return &node{kind: kindNull, at: at(n.GetToken())}
	case *ast.BoolNode:
		return scalar(n, kindBool)
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return scalar(n, kindNumber)
	case *ast.StringNode:
		return textNode(n)
	case *ast.LiteralNode:
		return &node{kind: kindText, at: at(n.GetToken()), text: n.Value.Value, indent: -1}
	case *ast.SequenceNode:
		list := &node{kind: kindList, at: at(n.GetToken())}
		for _, item := range n.Values {
			list.items = append(list.items, y.convert(item))
		}
		return list
	case *ast.MappingNode:
		return y.mapping(n.GetToken(), n.Values)
	case *ast.MappingValueNode:
		return y.mapping(n.Key.GetToken(), []*ast.MappingValueNode{n})
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		y.faults.add(at(n.GetToken()), "", "anchors, aliases and tags (& * !) are not used here; write the value out, or put a text in quotes.")
	default:
		y.faults.add(at(n.GetToken()), "", "this form of YAML (%s) is not used here; write the value out.", n.Type())
	}
	return &node{kind: kindBad, at: at(n.GetToken())}
}

func scalar(n ast.Node, k kind) *node {
	return &node{kind: k, at: at(n.GetToken()), text: strings.TrimSpace(n.GetToken().Value)}
}

func textNode(n *ast.StringNode) *node {
	t := &node{kind: kindText, at: at(n.GetToken()), text: n.Value, indent: -1}
	tk := n.GetToken()
	written := strings.TrimSpace(tk.Origin)
	switch {
	case tk.Type == token.StringType && written == n.Value:
		t.indent = 0
	case tk.Type == token.SingleQuoteType && written == "'"+n.Value+"'", tk.Type == token.DoubleQuoteType && written == `"`+n.Value+`"`:
		t.indent = 1
	}
	return t
}

func (y *yamlReader) mapping(tk *token.Token, values []*ast.MappingValueNode) *node {
	m := &node{kind: kindMap, at: at(tk)}
	// The token of a map is its first colon; its first key is what people look for.
	if len(values) > 0 {
		m.at = at(values[0].Key.GetToken())
	}
	for _, value := range values {
		here := at(value.Key.GetToken())
		var key string
		switch k := value.Key.(type) {
		case *ast.StringNode:
			key = k.Value
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
			key = k.GetToken().Value
		default:
			y.faults.add(here, "", "a key must be a plain text, and this one is not; write the values out.")
			continue
		}
		child := y.convert(value.Value)
		if child.kind == kindNull {
			child.at = here
		}
		m.members = append(m.members, member{key: key, at: here, value: child})
	}
	return m
}
