package calculator

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// value is a *big.Int, a float64, a bool, a string or a []value. Integers are never
// changed once they are made.
type value any

var (
	errBits     = fmt.Errorf("an integer has more than %d bits. Compute with floats: write 2.0 in place of 2", MaxBits)
	errWork     = errors.New("the expression takes too much work. Compute with floats, or split it into several expressions")
	errZero     = errors.New("division by zero")
	errOverflow = errors.New("the result is too large for a float")
	errDomain   = errors.New("the function has no real value for this argument")
	errComplex  = errors.New("a negative number to a fractional power has no real value")
	errInteger  = errors.New("an integer is required; use int(x) or round the number first")
	errNumber   = errors.New("a number is required, and a list or a text is given")
	errList     = errors.New("a list of numbers is required, as in [1, 2, 3]")
	errFinite   = errors.New("infinity and nan have no integer value")
)

// maxWork limits an evaluation, in multiplications of machine words.
const maxWork = 10_000_000

// machine is one evaluation.
type machine struct{ work int }

// spend takes work from the budget.
func (m *machine) spend(n int) error {
	m.work += n
	if m.work > maxWork || n < 0 {
		return errWork
	}
	return nil
}

func words(n *big.Int) int { return n.BitLen()/64 + 1 }

// product returns the work of a multiplication or division of numbers with x and y words.
func product(x, y int) int {
	if min(x, y) < 100 {
		return x * y
	}
	return x * y / 2 // Karatsuba's algorithm
}

// toNumber returns the value as *big.Int or float64; a bool is 0 or 1.
func toNumber(v value) (value, error) {
	switch v := v.(type) {
	case *big.Int, float64:
		return v, nil
	case bool:
		if v {
			return big.NewInt(1), nil
		}
		return new(big.Int), nil
	}
	return nil, errNumber
}

// integer returns the value of an integer or bool.
func integer(v value) (*big.Int, error) {
	n, err := toNumber(v)
	if err != nil {
		return nil, err
	}
	if i, ok := n.(*big.Int); ok {
		return i, nil
	}
	return nil, errInteger
}

// clamped returns an exponent or a number of digits, limited to a range that exceeds all floats and
// integers.
func clamped(n *big.Int) int {
	const most = 1 << 20
	switch {
	case n.CmpAbs(big.NewInt(most)) < 0:
		return int(n.Int64())
	case n.Sign() < 0:
		return -most
	}
	return most
}

// float returns a number as a float.
func float(v value) (float64, error) {
	n, err := toNumber(v)
	if err != nil {
		return 0, err
	}
	if f, ok := n.(float64); ok {
		return f, nil
	}
	return toFloat(n.(*big.Int))
}

func toFloat(n *big.Int) (float64, error) {
	if n.IsInt64() {
		return float64(n.Int64()), nil
	}
	f, _ := new(big.Float).SetInt(n).Float64()
	if math.IsInf(f, 0) {
		return 0, errOverflow
	}
	return f, nil
}

// pair returns two numbers, both integers or both floats.
func pair(a, b value) (x, y *big.Int, f, g float64, ints bool, err error) {
	if a, err = toNumber(a); err != nil {
		return
	}
	if b, err = toNumber(b); err != nil {
		return
	}
	x, isX := a.(*big.Int)
	y, isY := b.(*big.Int)
	if isX && isY {
		return x, y, 0, 0, true, nil
	}
	if f, err = float(a); err == nil {
		g, err = float(b)
	}
	return nil, nil, f, g, false, err
}

// apply computes a binary operator.
func (m *machine) apply(op string, a, b value) (value, error) {
	x, y, f, g, ints, err := pair(a, b)
	if err != nil {
		return nil, err
	}
	if ints {
		if err := m.spend(1 + words(x) + words(y)); err != nil {
			return nil, err
		}
		return m.integers(op, x, y)
	}
	if err := m.spend(1); err != nil {
		return nil, err
	}
	return floats(op, f, g)
}

func (m *machine) integers(op string, x, y *big.Int) (value, error) {
	switch op {
	case "+":
		return bounded(new(big.Int).Add(x, y))
	case "-":
		return bounded(new(big.Int).Sub(x, y))
	case "*":
		if x.BitLen()+y.BitLen() > MaxBits+1 {
			return nil, errBits
		}
		if err := m.spend(product(words(x), words(y))); err != nil {
			return nil, err
		}
		return bounded(new(big.Int).Mul(x, y))
	case "**":
		return m.power(x, y)
	}
	if y.Sign() == 0 {
		return nil, errZero
	}
	if err := m.spend(product(words(x), words(y))); err != nil {
		return nil, err
	}
	if op == "/" {
		return quotient(x, y)
	}
	// Python rounds towards minus infinity, QuoRem towards zero.
	q, r := new(big.Int).QuoRem(x, y, new(big.Int))
	if r.Sign() != 0 && r.Sign() != y.Sign() {
		q.Sub(q, big.NewInt(1))
		r.Add(r, y)
	}
	if op == "%" {
		return r, nil
	}
	return q, nil
}

func bounded(n *big.Int) (value, error) {
	if n.BitLen() > MaxBits {
		return nil, errBits
	}
	return n, nil
}

// quotient returns x/y, correctly rounded.
func quotient(x, y *big.Int) (value, error) {
	if x.IsInt64() && y.IsInt64() {
		const exact = 1 << 53
		if a, b := x.Int64(), y.Int64(); -exact <= a && a <= exact && -exact <= b && b <= exact {
			return float64(a) / float64(b), nil
		}
	}
	// A quotient from 66 more bits than the divisor has contains a bit for rounding and one that
	// records a remainder. This avoids reducing a fraction to lowest terms.
	shift := max(0, 66+y.BitLen()-x.BitLen())
	q, r := new(big.Int).QuoRem(new(big.Int).Lsh(x, uint(shift)), y, new(big.Int))
	sign := x.Sign() * y.Sign()
	q.Abs(q)
	if r.Sign() != 0 {
		q.SetBit(q, 0, 1)
	}
	f, _ := new(big.Float).SetMantExp(new(big.Float).SetInt(q), -shift).Float64()
	if math.IsInf(f, 0) {
		return nil, errOverflow
	}
	if sign < 0 {
		f = -f
	}
	return f, nil
}

// power returns x to the power of y.
func (m *machine) power(x, y *big.Int) (value, error) {
	if y.Sign() < 0 {
		f, err := toFloat(x)
		if err != nil {
			return nil, err
		}
		g, err := toFloat(y)
		if err != nil {
			return nil, err
		}
		return floats("**", f, g)
	}
	if x.BitLen() <= 1 { // -1, 0 and 1 have small powers for any exponent
		switch {
		case y.Sign() == 0 || x.Sign() > 0 || x.Sign() < 0 && y.Bit(0) == 0:
			return big.NewInt(1), nil
		}
		return x, nil
	}
	// x has at least 2^(BitLen-1), so a larger exponent gives more than MaxBits.
	if !y.IsInt64() || y.Int64() > MaxBits || int64(x.BitLen()-1)*y.Int64() > MaxBits {
		return nil, errBits
	}
	size := x.BitLen() * int(y.Int64()) / 64
	if err := m.spend(product(size, size)); err != nil {
		return nil, err
	}
	return bounded(new(big.Int).Exp(x, y, nil))
}

func floats(op string, f, g float64) (value, error) {
	switch op {
	case "+":
		return f + g, nil
	case "-":
		return f - g, nil
	case "*":
		return f * g, nil
	case "**":
		return floatPower(f, g)
	}
	if g == 0 {
		return nil, errZero
	}
	if op == "/" {
		return f / g, nil
	}
	// The steps of CPython's float_divmod, which keep quotient and remainder consistent.
	mod := math.Mod(f, g)
	div := (f - mod) / g
	switch {
	case mod == 0:
		mod = math.Copysign(0, g)
	case (g < 0) != (mod < 0):
		mod += g
		div--
	}
	if op == "%" {
		return mod, nil
	}
	if div == 0 {
		return math.Copysign(0, f/g), nil
	}
	floor := math.Floor(div)
	if div-floor > 0.5 {
		floor++
	}
	return floor, nil
}

func floatPower(f, g float64) (value, error) {
	switch {
	case f == 0 && g < 0:
		return nil, errZero
	case f < 0 && !math.IsInf(f, 0) && !math.IsInf(g, 0) && g != math.Floor(g):
		return nil, errComplex
	}
	r := math.Pow(f, g)
	if math.IsInf(r, 0) && !math.IsInf(f, 0) && !math.IsInf(g, 0) {
		return nil, errOverflow
	}
	return r, nil
}

// compare returns -1, 0 or 1; ordered is false if a or b is nan.
func (m *machine) compare(a, b value) (order int, ordered bool, err error) {
	if a, err = toNumber(a); err != nil {
		return 0, false, err
	}
	if b, err = toNumber(b); err != nil {
		return 0, false, err
	}
	x, isX := a.(*big.Int)
	y, isY := b.(*big.Int)
	if isX && isY {
		return x.Cmp(y), true, m.spend(1 + min(words(x), words(y)))
	}
	if err := m.spend(1); err != nil {
		return 0, false, err
	}
	if !isX && !isY {
		f, g := a.(float64), b.(float64)
		switch {
		case f < g:
			return -1, true, nil
		case f > g:
			return 1, true, nil
		}
		return 0, f == g, nil
	}
	if isX {
		order, ordered = compareMixed(x, b.(float64))
		return order, ordered, m.spend(words(x))
	}
	order, ordered = compareMixed(y, a.(float64))
	return -order, ordered, m.spend(words(y))
}

// compareMixed compares exactly, without rounding the integer to a float.
func compareMixed(x *big.Int, f float64) (int, bool) {
	if math.IsNaN(f) {
		return 0, false
	}
	if math.IsInf(f, 0) {
		if f > 0 {
			return -1, true
		}
		return 1, true
	}
	return new(big.Float).SetInt(x).Cmp(big.NewFloat(f)), true
}

// isTruthy returns the result of Python's bool().
func isTruthy(v value) bool {
	switch v := v.(type) {
	case bool:
		return v
	case *big.Int:
		return v.Sign() != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []value:
		return len(v) > 0
	}
	return false
}

// format writes a value as Python's repr does.
func format(v value) string {
	switch v := v.(type) {
	case bool:
		if v {
			return "True"
		}
		return "False"
	case *big.Int:
		return v.String()
	case float64:
		return formatFloat(v)
	case []value:
		parts := make([]string, len(v))
		for i, one := range v {
			parts[i] = format(one)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return fmt.Sprintf("%q", v)
}

func formatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
