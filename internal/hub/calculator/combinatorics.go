package calculator

import (
	"errors"
	"fmt"
	"math"
	"math/big"
)

// MaxFactorial is the largest argument of factorial.
const MaxFactorial = 10_000

var errNegative = errors.New("the arguments must not be negative")

func combinatorics() []*function {
	return []*function{
		integerFunction("factorial", "n", "Factorial of an integer from 0 to 10,000.", func(m *machine, a []*big.Int) (value, error) { return m.factorial(a[0]) }),
		integerFunction("gcd", "a b", "Greatest common divisor of two integers.", func(m *machine, a []*big.Int) (value, error) { return m.gcd(a[0], a[1]) }),
		define("lcm", "a b", "Least common multiple of two integers.", func(m *machine, a []value) (value, error) { return m.lcm(a[0], a[1]) }),
		integerFunction("comb", "n k", "Number of ways to choose k of n items without order.", func(m *machine, a []*big.Int) (value, error) { return m.comb(a[0], a[1]) }),
		integerFunction("perm", "n k=None", "Number of ways to choose k of n items with order; all n by default.", func(m *machine, a []*big.Int) (value, error) {
			if a[1] == nil {
				return m.factorial(a[0])
			}
			return m.perm(a[0], a[1])
		}),
		integerFunction("isqrt", "n", "Integer part of the square root of an integer that is not negative.", func(m *machine, a []*big.Int) (value, error) {
			if a[0].Sign() < 0 {
				return nil, errNegative
			}
			return new(big.Int).Sqrt(a[0]), m.spend(4 * words(a[0]) * words(a[0]))
		}),
	}
}

func (m *machine) factorial(n *big.Int) (value, error) {
	switch {
	case n.Sign() < 0:
		return nil, errNegative
	case !n.IsInt64() || n.Int64() > MaxFactorial:
		return nil, fmt.Errorf("the argument is above %d. Use lgamma(n+1) for the logarithm of the factorial", MaxFactorial)
	}
	size := int(n.Int64()) * n.BitLen() / 64
	if err := m.spend(100 + size*size/3); err != nil {
		return nil, err
	}
	return new(big.Int).MulRange(1, n.Int64()), nil
}

func (m *machine) gcd(a, b *big.Int) (value, error) {
	if err := m.spend(10 + 8*words(a)*words(b)); err != nil {
		return nil, err
	}
	return new(big.Int).GCD(nil, nil, new(big.Int).Abs(a), new(big.Int).Abs(b)), nil
}

// lcm returns a result for zero and any other number, as the reference does.
func (m *machine) lcm(v, w value) (value, error) {
	if !isTruthy(v) || !isTruthy(w) {
		return new(big.Int), nil
	}
	a, err := integer(v)
	if err != nil {
		return nil, err
	}
	b, err := integer(w)
	if err != nil {
		return nil, err
	}
	product, err := m.apply("*", a, b)
	if err != nil {
		return nil, err
	}
	divisor, err := m.gcd(a, b)
	if err != nil {
		return nil, err
	}
	if product, err = m.absolute(product); err != nil {
		return nil, err
	}
	return m.apply("//", product, divisor)
}

func (m *machine) comb(n, k *big.Int) (value, error) {
	switch {
	case n.Sign() < 0 || k.Sign() < 0:
		return nil, errNegative
	case k.Cmp(n) > 0:
		return new(big.Int), nil
	}
	if rest := new(big.Int).Sub(n, k); rest.Cmp(k) < 0 {
		k = rest
	}
	if k.Sign() == 0 {
		return big.NewInt(1), nil
	}
	// (n/k)^k is at most the result.
	floor := new(big.Int).Quo(n, k)
	if !k.IsInt64() || float64(floor.BitLen()-1)*float64(k.Int64()) > MaxBits {
		return nil, errBits
	}
	numerator := n.BitLen() * int(k.Int64()) / 64
	if err := m.spend(100 + numerator*numerator); err != nil {
		return nil, err
	}
	if n.IsInt64() && n.Int64() < math.MaxInt64 {
		return bounded(new(big.Int).Binomial(n.Int64(), k.Int64()))
	}
	p, err := m.perm(n, k)
	if err != nil {
		return nil, err
	}
	f, err := m.factorial(k)
	if err != nil {
		return nil, err
	}
	return m.apply("//", p, f)
}

func (m *machine) perm(n, k *big.Int) (value, error) {
	switch {
	case n.Sign() < 0 || k.Sign() < 0:
		return nil, errNegative
	case k.Cmp(n) > 0:
		return new(big.Int), nil
	case !k.IsInt64() || k.Int64() > MaxBits:
		return nil, errBits
	}
	result := big.NewInt(1)
	factor := new(big.Int).Set(n)
	one := big.NewInt(1)
	for range k.Int64() {
		if err := m.spend(50 + 4*words(result)*words(factor)); err != nil {
			return nil, err
		}
		if result = new(big.Int).Mul(result, factor); result.BitLen() > MaxBits {
			return nil, errBits
		}
		factor.Sub(factor, one)
	}
	return result, nil
}
