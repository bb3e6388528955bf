package native

import (
	"context"
	"errors"
	"fmt"
	"reflect"
)

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

// Method creates a tool from a function value, such as a bound method. Its parameters are an
// optional context and an optional value for the arguments. It returns an optional value and an
// optional error. The types have the same meaning as for [Typed].
func Method(name, description string, f reflect.Value, options ...Option) (Tool, error) {
	m := method{f: f}
	if err := m.read(); err != nil {
		return Tool{}, err
	}
	raw, kind, err := define(name, description, m.in, m.out, options)
	if err != nil {
		return Tool{}, err
	}
	return Tool{Name: name, Definition: raw, Call: func(ctx context.Context, c *Call) (Result, error) {
		out, err := m.call(ctx, c.Arguments)
		if err != nil {
			return Result{}, err
		}
		return result(kind, out)
	}}, nil
}

// method is a function called by reflection.
type method struct {
	f           reflect.Value
	in, out     reflect.Type // struct{} if there is none
	withContext bool
	takes       bool
	returns     bool
	fails       bool
}

func (m *method) read() error {
	t := m.f.Type()
	if t.IsVariadic() {
		return errors.New("it is variadic; take a struct with a slice")
	}
	rest := t.NumIn()
	if rest > 0 && t.In(0) == contextType {
		m.withContext = true
		rest--
	}
	m.in, m.out = reflect.TypeFor[struct{}](), reflect.TypeFor[struct{}]()
	if rest > 0 {
		m.takes, m.in = true, t.In(t.NumIn()-1)
	}
	if rest > 1 || m.takes && !isObject(m.in) {
		return errors.New("it must take one struct or map of arguments, after a context or not")
	}
	outs := t.NumOut()
	if outs > 0 && t.Out(outs-1) == errorType {
		m.fails = true
		outs--
	}
	if outs > 0 {
		m.returns, m.out = true, t.Out(0)
	}
	if outs > 1 {
		return errors.New("it must return one value or none, then an error or none")
	}
	return nil
}

// call calls the function and returns a pointer to its result.
func (m *method) call(ctx context.Context, arguments []byte) (any, error) {
	var args []reflect.Value
	if m.withContext {
		args = append(args, reflect.ValueOf(ctx))
	}
	in := reflect.New(m.in)
	if err := decode(arguments, in.Interface()); err != nil {
		return nil, fmt.Errorf("the arguments do not fit the tool: %w", err)
	}
	if m.takes {
		args = append(args, in.Elem())
	}
	outs := m.f.Call(args)
	if m.fails {
		if err, _ := outs[len(outs)-1].Interface().(error); err != nil {
			return nil, err
		}
	}
	out := reflect.New(m.out)
	if m.returns {
		out.Elem().Set(outs[0])
	}
	return out.Interface(), nil
}
