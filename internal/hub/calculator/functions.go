package calculator

import (
	"math"
	"math/big"
	"slices"
	"strings"
)

// function is a function that expressions may call.
type function struct {
	name     string
	doc      string
	params   []param
	variadic bool // takes any number of arguments, without names
	call     func(m *machine, args []value) (value, error)
}

type param struct {
	name     string
	required bool
	preset   value  // value of an omitted argument
	shown    string // the preset as shown in the signature
	named    bool   // may be given by name only
}

func (f *function) signature() string {
	var parts []string
	for _, p := range f.params {
		if p.required {
			parts = append(parts, p.name)
		} else {
			parts = append(parts, p.name+"="+p.shown)
		}
	}
	return f.name + "(" + strings.Join(parts, ", ") + ")"
}

// positional is the number of arguments that may be given without a name.
func (f *function) positional() int {
	n := 0
	for _, p := range f.params {
		if !p.named {
			n++
		}
	}
	return n
}

// constants of the language. True and False are words of Python.
func constant(name string) (value, bool) {
	switch name {
	case "True":
		return true, true
	case "False":
		return false, true
	}
	f, ok := namedConstant(name)
	return f, ok
}

func namedConstant(name string) (float64, bool) {
	switch name {
	case "e":
		return math.E, true
	case "pi":
		return math.Pi, true
	case "tau":
		return 2 * math.Pi, true
	case "inf":
		return math.Inf(1), true
	case "nan":
		return math.NaN(), true
	}
	return 0, false
}

// Names returns the names of the functions and constants in alphabetical order.
func Names() []string {
	names := []string{"e", "inf", "nan", "pi", "tau"}
	for _, f := range functions() {
		names = append(names, f.name)
	}
	slices.Sort(names)
	return names
}

func lookUp(name string) *function {
	all := functions()
	i, ok := slices.BinarySearchFunc(all, name, func(f *function, name string) int { return strings.Compare(f.name, name) })
	if !ok {
		return nil
	}
	return all[i]
}

// params parses a list of parameters: "x", "n=0", "*numbers". Those after "|" can only be given by
// name.
func params(list string) (out []param, variadic bool) {
	named := false
	for part := range strings.FieldsSeq(list) {
		if part == "|" {
			named = true
			continue
		}
		name, preset, optional := strings.Cut(part, "=")
		p := param{name: name, required: !optional, shown: preset, named: named}
		switch {
		case preset == "None":
		case strings.HasPrefix(preset, "'"):
			p.preset = strings.Trim(preset, "'")
		case optional:
			t, _, err := number(preset)
			if err != nil {
				panic(err) // a default in this file
			}
			p.preset = t.value
		}
		variadic = variadic || strings.HasPrefix(name, "*")
		out = append(out, p)
	}
	return out, variadic
}

func define(name, list, doc string, call func(m *machine, args []value) (value, error)) *function {
	p, variadic := params(list)
	return &function{name: name, doc: doc, params: p, variadic: variadic, call: call}
}

// operator returns a function that is equivalent to an operator.
func operator(name, op, doc string) *function {
	return define(name, "a b", doc, func(m *machine, a []value) (value, error) { return m.apply(op, a[0], a[1]) })
}

// floatFunction is a function of one float. An infinite result of a finite argument, or nan of a
// number, is an error, as in Python.
func floatFunction(name, doc string, f func(float64) float64) *function {
	return define(name, "x", doc, func(_ *machine, a []value) (value, error) {
		x, err := float(a[0])
		if err != nil {
			return nil, err
		}
		return checked(f(x), x)
	})
}

func checked(r float64, args ...float64) (value, error) {
	finite, numbers := true, true
	for _, x := range args {
		finite = finite && !math.IsInf(x, 0) && !math.IsNaN(x)
		numbers = numbers && !math.IsNaN(x)
	}
	switch {
	case math.IsNaN(r) && numbers:
		return nil, errDomain
	case math.IsInf(r, 0) && finite:
		return nil, errOverflow
	}
	return r, nil
}

// real2 is a function of two floats.
func real2(name, list, doc string, f func(x, y float64) float64) *function {
	return define(name, list, doc, func(_ *machine, a []value) (value, error) {
		x, err := float(a[0])
		if err != nil {
			return nil, err
		}
		y, err := float(a[1])
		if err != nil {
			return nil, err
		}
		return checked(f(x, y), x, y)
	})
}

// integerFunction is a function of integers.
func integerFunction(name, list, doc string, f func(m *machine, a []*big.Int) (value, error)) *function {
	return define(name, list, doc, func(m *machine, a []value) (value, error) {
		ints := make([]*big.Int, len(a))
		for i, v := range a {
			if v == nil {
				continue
			}
			n, err := integer(v)
			if err != nil {
				return nil, err
			}
			ints[i] = n
		}
		return f(m, ints)
	})
}

// test is a predicate on a float.
func test(name, doc string, f func(float64) bool) *function {
	return define(name, "x", doc, func(_ *machine, a []value) (value, error) {
		x, err := float(a[0])
		return f(x), err
	})
}

// toInteger is a function that rounds to an integer.
func toInteger(name, doc string, f func(float64) float64) *function {
	return define(name, "x", doc, func(_ *machine, a []value) (value, error) {
		n, err := toNumber(a[0])
		if err != nil {
			return nil, err
		}
		x, ok := n.(float64)
		if !ok {
			return n, nil
		}
		return fromFloat(f(x))
	})
}

func fromFloat(x float64) (value, error) {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil, errFinite
	}
	n, _ := big.NewFloat(x).Int(nil)
	return n, nil
}
