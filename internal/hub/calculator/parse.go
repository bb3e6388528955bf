package calculator

import "fmt"

// node is a part of a parsed expression. eval returns its value.
type node interface {
	eval(m *machine) (value, error)
}

type (
	literal struct{ value value }
	sign    struct {
		op string // + - not
		of node
	}
	binary struct {
		op          string
		left, right node
	}
	comparison struct {
		operands []node
		ops      []string
	}
	logical struct {
		and bool
		of  []node
	}
	list struct{ of []node }
	call struct {
		f      *function
		args   []node
		named  map[string]node
		column int
	}
)

type parser struct {
	tokens []token
	depth  int
}

// parse returns the tree of an expression.
func parse(text string) (node, error) {
	tokens, err := lex(text)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	if p.peek().kind == endToken {
		return nil, fmt.Errorf("the expression is empty")
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.peek().kind != endToken {
		return nil, p.unexpected("an operator or the end of the expression")
	}
	return n, nil
}

func (p *parser) peek() token { return p.tokens[0] }

func (p *parser) advance() token {
	t := p.tokens[0]
	if t.kind != endToken {
		p.tokens = p.tokens[1:]
	}
	return t
}

// is reports whether the next token is one of the symbols or words, and consumes it if so.
func (p *parser) is(texts ...string) (string, bool) {
	t := p.peek()
	for _, text := range texts {
		if t.text == text && (t.kind == symbolToken || t.kind == nameToken) {
			p.advance()
			return text, true
		}
	}
	return "", false
}

func (p *parser) unexpected(want string) error {
	t := p.peek()
	if t.kind == endToken {
		return fmt.Errorf("the expression ends where %s is expected", want)
	}
	return fmt.Errorf("position %d: %q stands where %s is expected", t.at+1, brief(t.text), want)
}

// enter counts a level of nesting; leave undoes it.
func (p *parser) enter() error {
	p.depth++
	if p.depth > MaxDepth {
		return fmt.Errorf("the expression is nested more than %d levels deep. Compute the inner parts first", MaxDepth)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

func (p *parser) or() (node, error) { return p.logical("or", p.and) }

func (p *parser) and() (node, error) { return p.logical("and", p.not) }

func (p *parser) logical(word string, operand func() (node, error)) (node, error) {
	first, err := operand()
	if err != nil {
		return nil, err
	}
	of := []node{first}
	for {
		if _, ok := p.is(word); !ok {
			break
		}
		n, err := operand()
		if err != nil {
			return nil, err
		}
		of = append(of, n)
	}
	if len(of) == 1 {
		return first, nil
	}
	return logical{and: word == "and", of: of}, nil
}

func (p *parser) not() (node, error) {
	if _, ok := p.is("not"); !ok {
		return p.comparison()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	of, err := p.not()
	return sign{"not", of}, err
}

func (p *parser) comparison() (node, error) {
	first, err := p.sum()
	if err != nil {
		return nil, err
	}
	c := comparison{operands: []node{first}}
	for {
		op, ok := p.is("<", "<=", ">", ">=", "==", "!=")
		if !ok {
			break
		}
		n, err := p.sum()
		if err != nil {
			return nil, err
		}
		c.ops, c.operands = append(c.ops, op), append(c.operands, n)
	}
	if len(c.ops) == 0 {
		return first, nil
	}
	return c, nil
}

func (p *parser) sum() (node, error) { return p.chain(p.term, "+", "-") }

func (p *parser) term() (node, error) { return p.chain(p.unary, "*", "/", "//", "%") }

// chain reads operators that are evaluated from left to right.
func (p *parser) chain(operand func() (node, error), ops ...string) (node, error) {
	left, err := operand()
	for err == nil {
		op, ok := p.is(ops...)
		if !ok {
			return left, nil
		}
		var right node
		right, err = operand()
		left = binary{op, left, right}
	}
	return nil, err
}

func (p *parser) unary() (node, error) {
	op, ok := p.is("+", "-")
	if !ok {
		return p.power()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	of, err := p.unary()
	return sign{op, of}, err
}

// power binds tighter than a sign on its left and looser than one on its right.
func (p *parser) power() (node, error) {
	base, err := p.primary()
	if err != nil {
		return nil, err
	}
	if _, ok := p.is("**"); !ok {
		return base, nil
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	exponent, err := p.unary()
	return binary{"**", base, exponent}, err
}

func (p *parser) primary() (node, error) {
	switch t := p.peek(); {
	case t.kind == numberToken:
		p.advance()
		return literal{t.value}, nil
	case t.kind == stringToken:
		p.advance()
		return literal{t.text}, nil
	case t.kind == symbolToken && (t.text == "(" || t.text == "["):
		return p.brackets()
	case t.kind == nameToken && !isWord(t.text):
		return p.name()
	}
	return nil, p.unexpected("a number, a name or an opening bracket")
}

func isWord(name string) bool { return name == "and" || name == "or" || name == "not" }

// brackets reads a parenthesis, a list or a tuple.
func (p *parser) brackets() (node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	end := ")"
	if p.advance().text == "[" {
		end = "]"
	}
	var of []node
	comma := false
	for {
		if _, ok := p.is(end); ok {
			break
		}
		if len(of) > 0 && !comma {
			return nil, p.unexpected(fmt.Sprintf("%q or an operator", end))
		}
		n, err := p.or()
		if err != nil {
			return nil, err
		}
		of = append(of, n)
		_, comma = p.is(",")
	}
	if end == ")" && len(of) == 1 && !comma {
		return of[0], nil
	}
	return list{of}, nil
}

func (p *parser) name() (node, error) {
	t := p.advance()
	if v, ok := constant(t.text); ok {
		return literal{v}, nil
	}
	f := lookUp(t.text)
	if f == nil {
		return nil, fmt.Errorf("position %d: %q is not a function or constant. Call list_allowed_fns for the names", t.at+1, brief(t.text))
	}
	if _, ok := p.is("("); !ok {
		return nil, fmt.Errorf("position %d: %s is a function; write its arguments in parentheses, as in %s", t.at+1, f.name, f.signature())
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	c := call{f: f, column: t.at + 1}
	for comma := true; ; {
		if _, ok := p.is(")"); ok {
			return c, nil
		}
		if !comma {
			return nil, p.unexpected(`")" or an operator`)
		}
		if err := p.argument(&c); err != nil {
			return nil, err
		}
		_, comma = p.is(",")
	}
}

// argument reads one argument, which may have a name.
func (p *parser) argument(c *call) error {
	name := ""
	if t := p.peek(); t.kind == nameToken && len(p.tokens) > 1 && p.tokens[1].kind == symbolToken && p.tokens[1].text == "=" {
		name = t.text
		p.advance()
		p.advance()
	}
	n, err := p.or()
	switch {
	case err != nil:
		return err
	case name == "" && len(c.named) > 0:
		return fmt.Errorf("position %d: in the call of %s an argument without a name follows one with a name", c.column, c.f.name)
	case name == "":
		c.args = append(c.args, n)
	default:
		if c.named == nil {
			c.named = map[string]node{}
		}
		if c.named[name] != nil {
			return fmt.Errorf("position %d: %s is given the argument %s twice", c.column, c.f.name, name)
		}
		c.named[name] = n
	}
	return nil
}
