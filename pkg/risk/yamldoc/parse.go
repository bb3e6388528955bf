package yamldoc

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

// Options configures [Parse].
type Options struct {
	// MaxDepth limits the nesting, because the parser recurses.
	MaxDepth int
	// References allows anchors, aliases and YAML's built-in tags. An anchor and its aliases
	// then share one node.
	References bool
	// Report is called for each fault, with a sentence that describes the fault and the fix.
	Report func(at Position, format string, args ...any)
}

// Parse parses one document. root is nil if the document is empty or has only comments. ok is
// false if the source cannot be parsed at all.
func Parse(source []byte, o Options) (root *Node, ok bool) {
	r := &reader{Options: o, anchors: map[string]*Node{}}
	file := r.parse(string(source))
	if file == nil {
		return nil, false
	}
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil || doc.Body.Type() == ast.CommentType || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		n := r.convert(doc.Body)
		if root != nil {
			r.Report(n.At, "the file contains a second document; put everything into one document, without a --- line.")
			break
		}
		root = n
	}
	return root, true
}

type reader struct {
	Options
	anchors map[string]*Node
}

// parse runs the YAML parser. It recovers from the parser's panics and limits its recursion,
// because a file must not be able to end the process.
func (r *reader) parse(text string) (file *ast.File) {
	defer func() {
		if recover() != nil {
			file = nil
			r.Report(Position{}, "the file cannot be read as YAML; check its indentation and quotes.")
		}
	}()
	tokens := joinColons(lexer.Tokenize(text))
	if deep := r.tooDeep(tokens); deep != nil {
		r.fault(deep, "the file is nested more than %d levels deep; reduce the nesting.", r.MaxDepth)
		return nil
	}
	// The callers report duplicate keys together with the other faults.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err == nil {
		return file
	}
	if syntax, ok := errors.AsType[yaml.Error](err); ok {
		r.fault(syntax.GetToken(), "the file is not valid YAML here: %s; check the indentation and the quotes.", OneLine(syntax.GetMessage()))
	} else {
		r.Report(Position{}, "the file is not valid YAML; check its indentation and quotes.")
	}
	return nil
}

// joinColons joins the parts of plain texts such as host:1 and http://host. A colon without a space
// after it belongs to the text (YAML 1.2.2, section 7.3.3), but within braces the lexer reads a key
// and its value.
func joinColons(tokens token.Tokens) token.Tokens {
	var joined token.Tokens
	for i := 0; i < len(tokens); i++ {
		tk := tokens[i]
		for i+2 < len(tokens) && tokens[i+1].Type == token.MappingValueType && follows(tk, tokens[i+1]) && follows(tokens[i+1], tokens[i+2]) {
			value := tokens[i+2]
			tk.Type, tk.Value, tk.Next = token.StringType, tk.Value+":"+value.Value, value.Next
			tk.Origin = tk.Value
			if tk.Next != nil {
				tk.Next.Prev = tk
			}
			i += 2
		}
		joined = append(joined, tk)
	}
	return joined
}

// follows reports whether one of two tokens is a plain text, and the second begins where the first ends.
func follows(first, second *token.Token) bool {
	for _, tk := range []*token.Token{first, second} {
		switch tk.Type {
		case token.MappingValueType, token.StringType, token.IntegerType, token.FloatType, token.BoolType, token.NullType, token.OctetIntegerType, token.HexIntegerType, token.BinaryIntegerType:
		default:
			return false
		}
	}
	return first.Position.Line == second.Position.Line && first.Position.Column+utf8.RuneCountInString(first.Value) == second.Position.Column
}

// tooDeep returns the token at which the nesting exceeds the limit, or nil. Block nesting
// requires indentation, so it checks the indentation and counts the nesting within one line.
func (r *reader) tooDeep(tokens token.Tokens) *token.Token {
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
		if flow > r.MaxDepth || marks > r.MaxDepth || tk.Position.IndentNum > 40*r.MaxDepth {
			return tk
		}
	}
	return nil
}

func at(tk *token.Token) Position {
	if tk == nil || tk.Position == nil {
		return Position{}
	}
	return Position{tk.Position.Line, tk.Position.Column}
}

func (r *reader) fault(tk *token.Token, format string, args ...any) {
	r.Report(at(tk), format, args...)
}

func (r *reader) convert(n ast.Node) *Node {
	switch n := n.(type) {
	case nil:
		return &Node{Kind: Null}
	case *ast.NullNode:
		return &Node{Kind: Null, At: at(n.GetToken())}
	case *ast.BoolNode:
		return scalar(n, Bool)
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return scalar(n, Number)
	case *ast.StringNode:
		return text(n)
	case *ast.LiteralNode:
		return &Node{Kind: Text, At: at(n.GetToken()), Text: n.Value.Value, Indent: -1}
	case *ast.SequenceNode:
		list := &Node{Kind: List, At: at(n.GetToken())}
		for _, item := range n.Values {
			list.Items = append(list.Items, r.convert(item))
		}
		return list
	case *ast.MappingNode:
		return r.mapping(n.GetToken(), n.Values)
	case *ast.MappingValueNode:
		return r.mapping(n.Key.GetToken(), []*ast.MappingValueNode{n})
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		return r.reference(n)
	}
	r.fault(n.GetToken(), "this form of YAML (%s) is not supported here; write the value out.", n.Type())
	return &Node{Kind: Bad, At: at(n.GetToken())}
}

// scalar keeps a number or boolean as written.
func scalar(n ast.Node, k Kind) *Node {
	return &Node{Kind: k, At: at(n.GetToken()), Text: strings.TrimSpace(n.GetToken().Value)}
}

func text(n *ast.StringNode) *Node {
	t := &Node{Kind: Text, At: at(n.GetToken()), Text: n.Value, Indent: -1}
	tk := n.GetToken()
	written := strings.TrimSpace(tk.Origin)
	switch {
	case tk.Type == token.StringType && written == n.Value:
		t.Indent = 0
	case tk.Type == token.SingleQuoteType && written == "'"+n.Value+"'", tk.Type == token.DoubleQuoteType && written == `"`+n.Value+`"`:
		t.Indent = 1
	}
	return t
}

func (r *reader) mapping(tk *token.Token, values []*ast.MappingValueNode) *Node {
	m := &Node{Kind: Map, At: at(tk)}
	// The token of a map is its first colon, but readers look for its first key.
	if len(values) > 0 {
		m.At = at(values[0].Key.GetToken())
	}
	for _, value := range values {
		here := at(value.Key.GetToken())
		key, err := keyOf(value.Key)
		if err != nil {
			r.Report(here, "%v", err)
			continue
		}
		m.Members = append(m.Members, Member{Key: key, At: here, Value: r.convert(value.Value)})
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
		return "", errors.New("merge keys (<<) are not supported here; write the values out.")
	}
	return "", errors.New("a key must be a plain string; this one is not.")
}

// reference converts an anchor (&), an alias (*) or a tag (!).
func (r *reader) reference(n ast.Node) *Node {
	bad := &Node{Kind: Bad, At: at(n.GetToken())}
	if !r.References {
		r.fault(n.GetToken(), "anchors, aliases and tags (& * !) are not supported here; write the value out, or put a string in quotes.")
		return bad
	}
	switch n := n.(type) {
	case *ast.AnchorNode:
		value := r.convert(n.Value)
		if n.Name != nil {
			r.anchors[n.Name.GetToken().Value] = value
		}
		return value
	case *ast.AliasNode:
		if n.Value != nil {
			if value, ok := r.anchors[n.Value.GetToken().Value]; ok {
				return value
			}
		}
		r.fault(n.GetToken(), "the alias refers to no anchor above it; define it with &name first, or write the value out.")
	case *ast.TagNode:
		value := r.convert(n.Value)
		switch n.GetToken().Value {
		case "!!str":
			if value.Kind == Bool || value.Kind == Number {
				return &Node{Kind: Text, At: value.At, Text: value.Text, Indent: -1}
			}
			return value
		case "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq":
			return value
		}
		// The value may be a password that begins with "!", so the message does not contain it.
		r.fault(n.GetToken(), "a value that begins with ! is a YAML tag, which is not supported here; put the string in quotes.")
		bad.At = value.At
	}
	return bad
}
