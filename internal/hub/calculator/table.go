package calculator

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"sync"
)

// functions returns the table, in alphabetical order. It must not be changed.
var functions = sync.OnceValue(func() []*function {
	all := slices.Concat(arithmetic(), analysis(), statistics(), combinatorics(), finance())
	slices.SortFunc(all, func(a, b *function) int { return strings.Compare(a.name, b.name) })
	return all
})

func arithmetic() []*function {
	return []*function{
		operator("add", "+", "Adds two numbers."),
		operator("subtract", "-", "Subtracts b from a."),
		operator("multiply", "*", "Multiplies two numbers."),
		operator("divide", "/", "Divides a by b. b must not be 0."),
		operator("floor_divide", "//", "Divides a by b and rounds down. b must not be 0."),
		operator("mod", "%", "Remainder of a divided by b, with the sign of b. b must not be 0."),
		define("abs", "x", "Absolute value of x.", func(m *machine, a []value) (value, error) { return m.absolute(a[0]) }),
		define("round", "x n=0", "Rounds x to n decimal places; a half goes to the even digit.", func(m *machine, a []value) (value, error) { return m.round(a[0], a[1]) }),
		define("int", "x", "Integer part of x.", func(_ *machine, a []value) (value, error) {
			n, err := toNumber(a[0])
			if x, ok := n.(float64); ok {
				return fromFloat(x)
			}
			return n, err
		}),
		define("float", "x", "x as a float.", func(_ *machine, a []value) (value, error) { return float(a[0]) }),
		define("bool", "x", "False for 0 and an empty list, else True.", func(_ *machine, a []value) (value, error) { return isTruthy(a[0]), nil }),
		toInteger("floor", "Largest integer that is not above x.", math.Floor),
		toInteger("ceil", "Smallest integer that is not below x.", math.Ceil),
		toInteger("trunc", "Integer part of x.", math.Trunc),
		floatFunction("fabs", "Absolute value of x as a float.", math.Abs),
		real2("copysign", "x y", "x with the sign of y.", math.Copysign),
		real2("fmod", "x y", "Remainder of x divided by y, with the sign of x.", math.Mod),
		real2("remainder", "x y", "IEEE 754 remainder: the difference between x and the closest multiple of y.", math.Remainder),
		real2("nextafter", "x y", "Next float after x towards y.", math.Nextafter),
		floatFunction("ulp", "Value of the least significant bit of x.", func(x float64) float64 {
			x = math.Abs(x)
			if next := math.Nextafter(x, math.Inf(1)); !math.IsInf(next, 0) {
				return next - x
			}
			return x - math.Nextafter(x, 0)
		}),
		test("isfinite", "True if x is neither infinite nor nan.", func(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }),
		test("isinf", "True if x is infinite.", func(x float64) bool { return math.IsInf(x, 0) }),
		test("isnan", "True if x is nan.", math.IsNaN),
		define("isclose", "a b | rel_tol=1e-09 abs_tol=0.0", "True if a and b are close to each other.", isClose),
		define("frexp", "x", "Mantissa and exponent of x, as a list.", func(_ *machine, a []value) (value, error) {
			x, err := float(a[0])
			f, n := math.Frexp(x)
			return []value{f, big.NewInt(int64(n))}, err
		}),
		define("modf", "x", "Fractional and integer part of x, as a list of floats.", func(_ *machine, a []value) (value, error) {
			x, err := float(a[0])
			if math.IsInf(x, 0) {
				return []value{math.Copysign(0, x), x}, err
			}
			i := math.Trunc(x)
			return []value{math.Copysign(x-i, x), math.Copysign(i, x)}, err
		}),
		define("ldexp", "x i", "x times 2 to the power of i.", func(_ *machine, a []value) (value, error) {
			x, err := float(a[0])
			if err != nil {
				return nil, err
			}
			i, err := integer(a[1])
			if err != nil {
				return nil, err
			}
			return checked(math.Ldexp(x, clamped(i)), x)
		}),
	}
}

func analysis() []*function {
	return []*function{
		real2("pow", "base exponent", "base to the power of exponent, as a float.", math.Pow),
		floatFunction("sqrt", "Square root of x. x must not be negative.", math.Sqrt),
		define("cbrt", "x", "Cube root of x.", func(m *machine, a []value) (value, error) {
			x, err := float(a[0])
			return math.Copysign(math.Pow(math.Abs(x), 1.0/3), x), err
		}),
		define("log", "x base=10", "Logarithm of x to the base, which is 10 by default. Both must be positive.", func(m *machine, a []value) (value, error) {
			x, err := logarithm(math.Log, a[0])
			if err != nil {
				return nil, err
			}
			base, err := logarithm(math.Log, a[1])
			if err != nil {
				return nil, err
			}
			if base == 0 {
				return nil, errDomain
			}
			return x / base, nil
		}),
		define("ln", "x", "Natural logarithm of x. x must be positive.", func(_ *machine, a []value) (value, error) { return logarithm(math.Log, a[0]) }),
		define("log10", "x", "Logarithm of x to base 10. x must be positive.", func(_ *machine, a []value) (value, error) { return logarithm(math.Log10, a[0]) }),
		define("log2", "x", "Logarithm of x to base 2. x must be positive.", func(_ *machine, a []value) (value, error) { return logarithm(math.Log2, a[0]) }),
		floatFunction("log1p", "Natural logarithm of 1+x.", math.Log1p),
		floatFunction("exp", "e to the power of x.", math.Exp),
		floatFunction("exp2", "2 to the power of x.", math.Exp2),
		floatFunction("expm1", "e to the power of x, minus 1.", math.Expm1),
		floatFunction("sin", "Sine of x radians.", math.Sin), floatFunction("cos", "Cosine of x radians.", math.Cos), floatFunction("tan", "Tangent of x radians.", math.Tan),
		floatFunction("asin", "Arc sine of x in radians.", math.Asin), floatFunction("acos", "Arc cosine of x in radians.", math.Acos), floatFunction("atan", "Arc tangent of x in radians.", math.Atan),
		floatFunction("sinh", "Hyperbolic sine of x.", math.Sinh), floatFunction("cosh", "Hyperbolic cosine of x.", math.Cosh), floatFunction("tanh", "Hyperbolic tangent of x.", math.Tanh),
		floatFunction("asinh", "Inverse hyperbolic sine of x.", math.Asinh), floatFunction("acosh", "Inverse hyperbolic cosine of x.", math.Acosh), floatFunction("atanh", "Inverse hyperbolic tangent of x.", math.Atanh),
		real2("atan2", "y x", "Arc tangent of y/x in radians, in the quadrant of the point.", math.Atan2),
		floatFunction("degrees", "x radians in degrees.", func(x float64) float64 { return x * (180 / math.Pi) }),
		floatFunction("radians", "x degrees in radians.", func(x float64) float64 { return x * (math.Pi / 180) }),
		floatFunction("erf", "Error function of x.", math.Erf), floatFunction("erfc", "Complementary error function of x.", math.Erfc),
		floatFunction("gamma", "Gamma function of x.", gamma),
		floatFunction("lgamma", "Natural logarithm of the absolute value of the gamma function of x.", func(x float64) float64 { y, _ := math.Lgamma(x); return y }),
		define("hypot", "*args", "Euclidean norm of the arguments.", func(_ *machine, a []value) (value, error) { return norm(a) }),
		define("norm_euclidean", "p", "Euclidean norm of a point, which is a list.", func(_ *machine, a []value) (value, error) {
			p, err := numbers(a[0])
			if err != nil {
				return nil, err
			}
			return norm(p)
		}),
		define("dist", "p q metric='euclidean'", "Distance between two points, which are lists. metric is 'euclidean' or 'manhattan'.", distance),
	}
}

func statistics() []*function {
	of := func(name, doc string, f func(m *machine, list []value) (value, error)) *function {
		return define(name, "numbers", doc, func(m *machine, a []value) (value, error) {
			list, err := numbers(a[0])
			if err != nil {
				return nil, err
			}
			return f(m, list)
		})
	}
	return []*function{
		of("min", "Smallest number of a list.", func(m *machine, l []value) (value, error) { return m.extreme(l, -1) }),
		of("max", "Largest number of a list.", func(m *machine, l []value) (value, error) { return m.extreme(l, 1) }),
		of("sum", "Sum of a list.", func(m *machine, l []value) (value, error) { return m.fold("+", big.NewInt(0), l) }),
		of("average", "Arithmetic mean of a list.", (*machine).average),
		of("median", "Median of a list.", (*machine).median),
		of("mode", "List of the most frequent numbers of a list.", (*machine).mode),
		of("standard_deviation", "Population standard deviation of a list.", (*machine).deviation),
		of("fsum", "Sum of a list of floats without rounding in between.", (*machine).exactSum),
		define("prod", "numbers | start=1", "Product of a list and start.", func(m *machine, a []value) (value, error) {
			list, err := numbers(a[0])
			if err != nil {
				return nil, err
			}
			return m.fold("*", a[1], list)
		}),
	}
}

func finance() []*function {
	return []*function{
		define("simple_interest", "principal rate time", "Simple interest: principal * rate * time. rate is a decimal per year, time is in years.", func(m *machine, a []value) (value, error) {
			return m.fold("*", a[0], a[1:])
		}),
		define("compound_interest", "principal rate time periods=1", "Final amount after compounding the given number of periods a year. rate is a decimal per year, time is in years.", compound),
	}
}
