package calculator

import "fmt"

// evaluate returns the value of an expression.
func evaluate(expression string) (value, error) {
	n, err := parse(expression)
	if err != nil {
		return nil, err
	}
	return n.eval(&machine{})
}

func (l literal) eval(*machine) (value, error) { return l.value, nil }

func (s sign) eval(m *machine) (value, error) {
	v, err := s.of.eval(m)
	if err != nil {
		return nil, err
	}
	if s.op == "not" {
		return !isTruthy(v), nil
	}
	n, err := toNumber(v)
	if err != nil || s.op == "+" {
		return n, err
	}
	if f, ok := n.(float64); ok {
		return -f, m.spend(1)
	}
	return m.negate(n)
}

func (b binary) eval(m *machine) (value, error) {
	left, err := b.left.eval(m)
	if err != nil {
		return nil, err
	}
	right, err := b.right.eval(m)
	if err != nil {
		return nil, err
	}
	v, err := m.apply(b.op, left, right)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.op, err)
	}
	return v, nil
}

func (c comparison) eval(m *machine) (value, error) {
	left, err := c.operands[0].eval(m)
	if err != nil {
		return nil, err
	}
	for i, op := range c.ops {
		right, err := c.operands[i+1].eval(m)
		if err != nil {
			return nil, err
		}
		holds, err := m.holds(op, left, right)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
		if !holds {
			return false, nil
		}
		left = right
	}
	return true, nil
}

func (m *machine) holds(op string, a, b value) (bool, error) {
	switch op {
	case "==":
		return m.equal(a, b)
	case "!=":
		equal, err := m.equal(a, b)
		return !equal, err
	}
	order, ordered, err := m.compare(a, b)
	switch {
	case !ordered || err != nil:
		return false, err
	case order == 0:
		return op == "<=" || op == ">=", nil
	}
	return (order < 0) == (op[0] == '<'), nil
}

// equal compares values of any type; a list is never equal to a number.
func (m *machine) equal(a, b value) (bool, error) {
	if x, ok := a.([]value); ok {
		y, ok := b.([]value)
		if !ok || len(x) != len(y) {
			return false, nil
		}
		for i := range x {
			if equal, err := m.equal(x[i], y[i]); !equal || err != nil {
				return false, err
			}
		}
		return true, nil
	}
	if _, ok := b.([]value); ok {
		return false, nil
	}
	if x, ok := a.(string); ok {
		y, ok := b.(string)
		return ok && x == y, nil
	}
	if _, ok := b.(string); ok {
		return false, nil
	}
	order, ordered, err := m.compare(a, b)
	return ordered && order == 0, err
}

// eval returns the operand that decides, as in Python.
func (l logical) eval(m *machine) (value, error) {
	var v value
	for _, n := range l.of {
		var err error
		if v, err = n.eval(m); err != nil || isTruthy(v) != l.and {
			return v, err
		}
	}
	return v, nil
}

func (l list) eval(m *machine) (value, error) {
	out := make([]value, len(l.of))
	for i, n := range l.of {
		v, err := n.eval(m)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, m.spend(len(out))
}

func (c call) eval(m *machine) (value, error) {
	args, err := c.arguments(m)
	if err != nil {
		return nil, err
	}
	if err := m.spend(1 + len(args)); err != nil {
		return nil, err
	}
	v, err := c.f.call(m, args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.f.name, err)
	}
	return v, nil
}

// arguments returns a value for each parameter. Omitting a parameter without a default is an
// error. A variadic function gets all given arguments.
func (c call) arguments(m *machine) ([]value, error) {
	fail := func(what string) error {
		return fmt.Errorf("position %d: %s. Its arguments are %s", c.column, what, c.f.signature())
	}
	var args []value
	for _, n := range c.args {
		v, err := n.eval(m)
		if err != nil {
			return nil, err
		}
		args = append(args, v)
	}
	if c.f.variadic {
		if len(c.named) > 0 {
			return nil, fail(c.f.name + " takes no arguments with names")
		}
		return args, nil
	}
	if len(args) > c.f.positional() {
		return nil, fail(fmt.Sprintf("%s is given %d arguments", c.f.name, len(args)))
	}
	used := 0
	for i, p := range c.f.params {
		n, named := c.named[p.name]
		if named {
			used++
		}
		switch {
		case i < len(args) && named:
			return nil, fail(fmt.Sprintf("%s is given the argument %s twice", c.f.name, p.name))
		case i < len(args):
		case named:
			v, err := n.eval(m)
			if err != nil {
				return nil, err
			}
			args = append(args, v)
		case p.required:
			return nil, fail(fmt.Sprintf("%s lacks the argument %s", c.f.name, p.name))
		default:
			args = append(args, p.preset)
		}
	}
	if used < len(c.named) {
		return nil, fail(c.f.name + " has no argument of a name that is given")
	}
	return args, nil
}
