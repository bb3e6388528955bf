package calculator

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

func (m *machine) negate(v value) (value, error) { return m.apply("-", new(big.Int), v) }

func (m *machine) absolute(v value) (value, error) {
	n, err := toNumber(v)
	switch n := n.(type) {
	case float64:
		return math.Abs(n), nil
	case *big.Int:
		return new(big.Int).Abs(n), m.spend(words(n))
	}
	return nil, err
}

// round rounds as Python does: on the exact value, with a half to the even digit.
func (m *machine) round(v, places value) (value, error) {
	p, err := integer(places)
	if err != nil {
		return nil, err
	}
	n, err := toNumber(v)
	if err != nil {
		return nil, err
	}
	digits := clamped(p)
	switch n := n.(type) {
	case *big.Int:
		if digits >= 0 {
			return n, nil
		}
		return m.roundInteger(n, -digits)
	case float64:
		return m.roundFloat(n, digits)
	}
	return nil, errNumber
}

func (m *machine) roundInteger(n *big.Int, zeros int) (value, error) {
	if zeros > n.BitLen()/3+2 {
		return new(big.Int), nil
	}
	unit, err := m.power(big.NewInt(10), big.NewInt(int64(zeros)))
	if err != nil {
		return nil, err
	}
	u := unit.(*big.Int)
	if err := m.spend(3 * product(words(n), words(u))); err != nil {
		return nil, err
	}
	q, r := new(big.Int).DivMod(n, u, new(big.Int)) // 0 <= r < u
	half := new(big.Int).Lsh(r, 1).Cmp(u)
	if half > 0 || half == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(1))
	}
	return bounded(q.Mul(q, u))
}

func (m *machine) roundFloat(x float64, digits int) (value, error) {
	switch {
	case math.IsInf(x, 0), math.IsNaN(x), digits > 323:
		return x, nil
	case digits < -308:
		return math.Copysign(0, x), nil
	case digits >= 0:
		f, err := strconv.ParseFloat(strconv.FormatFloat(x, 'f', digits, 64), 64)
		if err != nil {
			return nil, errOverflow
		}
		return f, m.spend(100)
	}
	// A half is a half of the exact value, so the digits below the unit must not be ignored: they
	// are kept as a remainder.
	whole, fraction := math.Modf(math.Abs(x))
	n, _ := big.NewFloat(whole).Int(nil)
	doubled := n.Lsh(n, 1) // a remainder of one half is an odd last bit
	if fraction > 0 {
		doubled.SetBit(doubled, 0, 1)
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-digits)), nil)
	q, r := new(big.Int).QuoRem(doubled, new(big.Int).Lsh(unit, 1), new(big.Int))
	half := r.Cmp(unit)
	if half > 0 || half == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(1))
	}
	f, err := toFloat(q.Mul(q, unit))
	return math.Copysign(f, x), errors.Join(err, m.spend(100))
}

// logarithm applies one of the logarithms to a positive number. Integers may exceed the range
// of floats.
func logarithm(log func(float64) float64, v value) (float64, error) {
	n, err := toNumber(v)
	if err != nil {
		return 0, err
	}
	if i, ok := n.(*big.Int); ok && i.BitLen() > 1000 {
		if i.Sign() < 0 {
			return 0, errDomain
		}
		mantissa := new(big.Float)
		exponent := new(big.Float).SetInt(i).MantExp(mantissa)
		f, _ := mantissa.Float64()
		return log(f) + log(2)*float64(exponent), nil
	}
	x, err := float(n)
	if err != nil {
		return 0, err
	}
	if x <= 0 {
		return 0, errDomain
	}
	return log(x), nil
}

// gamma differs from math.Gamma at the poles, where Go returns an infinity for 0.
func gamma(x float64) float64 {
	if x == math.Floor(x) && x <= 0 {
		return math.NaN()
	}
	return math.Gamma(x)
}

// numbers returns a list of numbers.
func numbers(v value) ([]value, error) {
	list, ok := v.([]value)
	if !ok {
		return nil, errList
	}
	for _, one := range list {
		if _, err := toNumber(one); err != nil {
			return nil, errList
		}
	}
	return list, nil
}

var errEmpty = errors.New("the list is empty")

func (m *machine) fold(op string, start value, list []value) (value, error) {
	v, err := toNumber(start)
	for _, one := range list {
		if err != nil {
			return nil, err
		}
		v, err = m.apply(op, v, one)
	}
	return v, err
}

func (m *machine) extreme(list []value, want int) (value, error) {
	if len(list) == 0 {
		return nil, errEmpty
	}
	best := list[0]
	for _, one := range list[1:] {
		order, _, err := m.compare(one, best)
		if err != nil {
			return nil, err
		}
		if order == want {
			best = one
		}
	}
	return best, nil
}

func (m *machine) average(list []value) (value, error) {
	if len(list) == 0 {
		return nil, errEmpty
	}
	sum, err := m.fold("+", new(big.Int), list)
	if err != nil {
		return nil, err
	}
	return m.apply("/", sum, big.NewInt(int64(len(list))))
}

func (m *machine) median(list []value) (value, error) {
	if len(list) == 0 {
		return nil, errEmpty
	}
	var fault error
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b value) int {
		order, _, err := m.compare(a, b)
		fault = errors.Join(fault, err)
		if fault != nil {
			return 0
		}
		return order
	})
	if fault != nil {
		return nil, errWork
	}
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid], nil
	}
	sum, err := m.apply("+", sorted[mid-1], sorted[mid])
	if err != nil {
		return nil, err
	}
	return m.apply("/", sum, big.NewInt(2))
}

// mode counts equal numbers together regardless of their type, and returns the first of each.
func (m *machine) mode(list []value) (value, error) {
	if len(list) == 0 {
		return nil, errEmpty
	}
	type group struct {
		first value
		count int
	}
	var groups []*group
	byText := map[string]*group{}
	most := 0
	for _, one := range list {
		key, err := m.key(one)
		if err != nil {
			return nil, err
		}
		g := byText[key]
		if g == nil {
			g = &group{first: one}
			byText[key], groups = g, append(groups, g)
		}
		g.count++
		most = max(most, g.count)
	}
	var out []value
	for _, g := range groups {
		if g.count == most {
			out = append(out, g.first)
		}
	}
	return out, nil
}

// key is the same for equal numbers.
func (m *machine) key(v value) (string, error) {
	n, err := toNumber(v)
	if err != nil {
		return "", err
	}
	if f, ok := n.(float64); ok {
		if f != math.Floor(f) || math.IsInf(f, 0) {
			return formatFloat(f), m.spend(10)
		}
		n, _ = big.NewFloat(f).Int(nil)
	}
	i := n.(*big.Int)
	return i.Text(62), m.spend(words(i) * words(i))
}

func (m *machine) deviation(list []value) (value, error) {
	mean, err := m.average(list)
	if err != nil {
		return nil, err
	}
	var sum value = new(big.Int)
	for _, one := range list {
		difference, err := m.apply("-", one, mean)
		if err != nil {
			return nil, err
		}
		square, err := m.apply("**", difference, big.NewInt(2))
		if err != nil {
			return nil, err
		}
		if sum, err = m.apply("+", sum, square); err != nil {
			return nil, err
		}
	}
	variance, err := m.apply("/", sum, big.NewInt(int64(len(list))))
	if err != nil {
		return nil, err
	}
	f, err := float(variance)
	return math.Sqrt(f), err
}

// exactSum adds floats with enough bits for any sum of floats.
func (m *machine) exactSum(list []value) (value, error) {
	const bits = 2200 // 2^1024 down to 2^-1074, and the carries
	sum := new(big.Float).SetPrec(bits)
	special := 0.0
	for _, one := range list {
		f, err := float(one)
		if err != nil {
			return nil, err
		}
		if math.IsInf(f, 0) || math.IsNaN(f) {
			special += f
			continue
		}
		sum.Add(sum, new(big.Float).SetFloat64(f))
		if err := m.spend(50); err != nil {
			return nil, err
		}
	}
	if special != 0 {
		return special, nil
	}
	f, _ := sum.Float64()
	if math.IsInf(f, 0) {
		return nil, errOverflow
	}
	return f, nil
}

func norm(list []value) (value, error) {
	var largest float64
	fs := make([]float64, len(list))
	for i, v := range list {
		f, err := float(v)
		if err != nil {
			return nil, err
		}
		fs[i] = f
		largest = math.Max(largest, math.Abs(f))
		if math.IsInf(f, 0) {
			largest = math.Inf(1)
		}
	}
	if largest == 0 || math.IsInf(largest, 0) || math.IsNaN(largest) {
		return largest, nil
	}
	sum := 0.0
	for _, f := range fs {
		sum += (f / largest) * (f / largest)
	}
	return largest * math.Sqrt(sum), nil
}

func distance(m *machine, a []value) (value, error) {
	p, err := numbers(a[0])
	if err != nil {
		return nil, err
	}
	q, err := numbers(a[1])
	if err != nil {
		return nil, err
	}
	if len(p) != len(q) {
		return nil, errors.New("the points have different numbers of dimensions")
	}
	metric, _ := a[2].(string)
	if metric != "euclidean" && metric != "manhattan" {
		return nil, errors.New("metric must be 'euclidean' or 'manhattan'")
	}
	steps := make([]value, len(p))
	for i := range p {
		if steps[i], err = m.apply("-", p[i], q[i]); err != nil {
			return nil, err
		}
		if steps[i], err = m.absolute(steps[i]); err != nil {
			return nil, err
		}
	}
	if metric == "manhattan" {
		return m.fold("+", new(big.Int), steps)
	}
	return norm(steps)
}

func compound(m *machine, a []value) (value, error) {
	principal, rate, time, periods := a[0], a[1], a[2], a[3]
	each, err := m.apply("/", rate, periods)
	if err != nil {
		return nil, err
	}
	growth, err := m.apply("+", big.NewInt(1), each)
	if err != nil {
		return nil, err
	}
	times, err := m.apply("*", periods, time)
	if err != nil {
		return nil, err
	}
	factor, err := m.apply("**", growth, times)
	if err != nil {
		return nil, err
	}
	return m.apply("*", principal, factor)
}

func isClose(m *machine, args []value) (value, error) {
	var f [4]float64
	for i, v := range args {
		var err error
		if f[i], err = float(v); err != nil {
			return nil, err
		}
	}
	a, b, relative, absolute := f[0], f[1], f[2], f[3]
	switch {
	case relative < 0 || absolute < 0:
		return nil, errors.New("the tolerances must not be negative")
	case a == b:
		return true, nil
	case math.IsInf(a, 0) || math.IsInf(b, 0):
		return false, nil
	}
	d := math.Abs(a - b)
	return d <= math.Abs(relative*b) || d <= math.Abs(relative*a) || d <= absolute, nil
}

// help describes a function or constant.
func help(name string) string {
	if v, ok := namedConstant(name); ok {
		return "constant: " + name + "\n    Constant value: " + formatFloat(v)
	}
	if f := lookUp(name); f != nil {
		return "function: " + f.signature() + "\n    " + f.doc
	}
	return ""
}

func overview() string {
	names := Names()
	var b strings.Builder
	b.WriteString("Available functions (" + strconv.Itoa(len(names)) + "):\n")
	for _, name := range names {
		if v, ok := namedConstant(name); ok {
			b.WriteString("\n  " + name + " = " + formatFloat(v))
			continue
		}
		f := lookUp(name)
		b.WriteString("\n  " + f.signature() + "\n      " + f.doc)
	}
	return b.String()
}
