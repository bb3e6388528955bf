package validate

import (
	"encoding/json"
	"strconv"
	"strings"
)

// farDigits limits the digits and the exponent of numbers that are compared exactly. The validator
// uses fractions: a number such as 1e999999 would take a long time, and a larger exponent would
// make it fail.
const farDigits = 400

// boundNumbers returns doc with each number outside the exact range replaced by one with the same result
// for bounds and types: the same sign, an integer if the original is one, and larger than any
// bound. It does not change the bytes of the call.
func boundNumbers(doc any) any {
	switch doc := doc.(type) {
	case json.Number:
		return boundNumber(doc)
	case []any:
		for i, item := range doc {
			doc[i] = boundNumbers(item)
		}
	case map[string]any:
		for name, item := range doc {
			doc[name] = boundNumbers(item)
		}
	}
	return doc
}

func boundNumber(n json.Number) json.Number {
	text := string(n)
	mantissa, exponent := text, 0
	if e := strings.IndexAny(text, "eE"); e >= 0 {
		mantissa = text[:e]
		exponent = atoiSaturated(text[e+1:])
	}
	if len(text) <= farDigits && exponent <= farDigits && exponent >= -farDigits {
		return n
	}
	sign := ""
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	first := strings.IndexAny(digits, "123456789")
	if first < 0 {
		return "0"
	}
	// The value is 0.DDD × 10^magnitude, where D starts with the first significant digit.
	magnitude := len(whole) - first + exponent
	switch {
	case magnitude > farDigits:
		return json.Number(sign + "1e" + strconv.Itoa(2*farDigits))
	case magnitude < -farDigits:
		return json.Number(sign + "1e-" + strconv.Itoa(2*farDigits))
	}
	digits = strings.TrimRight(digits[first:], "0")
	if len(digits) > 2*farDigits {
		digits = digits[:2*farDigits]
	}
	return json.Number(sign + "0." + digits + "e" + strconv.Itoa(magnitude))
}

// atoiSaturated parses the digits of an exponent. If it does not fit, the result is the largest value.
func atoiSaturated(text string) int {
	n, err := strconv.Atoi(text)
	switch {
	case err == nil && n > -1e9 && n < 1e9:
		return n
	case strings.HasPrefix(text, "-"):
		return -1e9
	default:
		return 1e9
	}
}
