package calculator

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/kit/truncate"
)

// Limits of an expression.
const (
	MaxBytes  = 100_000 // bytes of text
	MaxTokens = 10_000  // numbers, names, operators and brackets
	MaxDepth  = 64      // nesting of brackets, calls, signs and powers
	MaxBits   = 120_000 // bits of an integer; 10,000! has 118,459
)

type kind int

const (
	endToken kind = iota
	numberToken
	nameToken
	stringToken
	symbolToken
)

type token struct {
	kind  kind
	text  string // the symbol, the name, or the value of a string
	value value  // of a number
	at    int    // byte offset, for errors
}

// symbols are in matching order: the longer ones first.
var symbols = [...]string{"**", "//", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "<", ">", "(", ")", "[", "]", ",", "="}

// lex splits an expression into tokens; the last has the kind endToken.
func lex(text string) ([]token, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the expression has %d bytes; at most %d are allowed. Split it into several expressions", len(text), MaxBytes)
	}
	var out []token
	for i := 0; ; {
		for i < len(text) && strings.IndexByte(" \t\r\n", text[i]) >= 0 {
			i++
		}
		if i == len(text) {
			return append(out, token{kind: endToken, at: i}), nil
		}
		if len(out) == MaxTokens {
			return nil, fmt.Errorf("the expression has more than %d numbers, names and operators. Split it into several expressions", MaxTokens)
		}
		t, size, err := next(text[i:])
		if err != nil {
			return nil, fmt.Errorf("position %d: %w", i+1, err)
		}
		t.at = i
		out = append(out, t)
		i += size
	}
}

// next reads the token at the start of text, which is not empty.
func next(text string) (token, int, error) {
	c := text[0]
	switch {
	case isDigit(c), c == '.' && len(text) > 1 && isDigit(text[1]):
		return number(text)
	case isLetter(c):
		n := 1
		for n < len(text) && (isLetter(text[n]) || isDigit(text[n])) {
			n++
		}
		return token{kind: nameToken, text: text[:n]}, n, nil
	case c == '\'' || c == '"':
		end := strings.IndexByte(text[1:], c)
		if end < 0 || strings.ContainsAny(text[1:1+end], "\\\n") {
			return token{}, 0, fmt.Errorf("the string does not end, or has an escape; strings are plain words in quotes")
		}
		return token{kind: stringToken, text: text[1 : 1+end]}, end + 2, nil
	}
	for _, s := range symbols {
		if strings.HasPrefix(text, s) {
			return token{kind: symbolToken, text: s}, len(s), nil
		}
	}
	switch c {
	case '^':
		return token{}, 0, fmt.Errorf("^ is not an operator here; write ** for a power")
	case '.':
		return token{}, 0, fmt.Errorf("attributes are not allowed; write the name of the function alone")
	}
	r, _ := utf8.DecodeRuneInString(text)
	return token{}, 0, fmt.Errorf("%q is not part of an arithmetic expression", r)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' }

// number reads a literal by Python's rules.
func number(text string) (token, int, error) {
	n := 0
	float := false
	if len(text) > 1 && text[0] == '0' && strings.IndexByte("xXoObB", text[1]) >= 0 {
		n = 2
		for n < len(text) && (isLetter(text[n]) || isDigit(text[n])) {
			n++
		}
	} else {
		digits := func() {
			for n < len(text) && (isDigit(text[n]) || text[n] == '_') {
				n++
			}
		}
		digits()
		if n < len(text) && text[n] == '.' {
			float = true
			n++
			digits()
		}
		if n < len(text) && (text[n] == 'e' || text[n] == 'E') {
			sign := n + 1
			if sign < len(text) && (text[sign] == '+' || text[sign] == '-') {
				sign++
			}
			if sign < len(text) && isDigit(text[sign]) {
				float, n = true, sign
				digits()
			}
		}
		if n < len(text) && isLetter(text[n]) {
			return token{}, 0, fmt.Errorf("a letter follows the number %s; write * between a number and a name", brief(text[:n]))
		}
	}
	literal := text[:n]
	v, err := parseNumber(literal, float)
	return token{kind: numberToken, text: literal, value: v}, n, err
}

func parseNumber(literal string, float bool) (value, error) {
	bad := fmt.Errorf("%s is not a number", brief(literal))
	if strings.Contains(literal, "__") || strings.HasSuffix(literal, "_") || strings.Contains(literal, "_.") || strings.Contains(literal, "._") || strings.Contains(literal, "_e") || strings.Contains(literal, "_E") {
		return nil, bad
	}
	if float {
		f, err := strconv.ParseFloat(strings.ReplaceAll(literal, "_", ""), 64)
		if err != nil && f == 0 {
			return nil, bad
		}
		return f, nil // infinity if it is too large, as in Python
	}
	if len(literal) > MaxBits/3 {
		return nil, errBits
	}
	base := 0
	if len(literal) < 2 || isDigit(literal[1]) || literal[1] == '_' {
		if literal[0] == '0' && strings.Trim(literal, "0_") != "" {
			return nil, fmt.Errorf("%s has leading zeros; write the number without them", brief(literal))
		}
		base, literal = 10, strings.ReplaceAll(literal, "_", "")
	}
	n, ok := new(big.Int).SetString(literal, base)
	if !ok {
		return nil, bad
	}
	if n.BitLen() > MaxBits {
		return nil, errBits
	}
	return n, nil
}

// brief shortens text for an error.
func brief(text string) string { return truncate.Text(text, 40) }
