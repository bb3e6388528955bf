package validate

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Patterns in schemas are ECMAScript; Go runs RE2. Most patterns have the same meaning in both. The
// differences below are rewritten. Patterns that RE2 cannot run (lookaround, backreferences) or
// interprets differently are not enforced.

// pattern is a compiled regular expression that prints as written in the schema.
type pattern struct {
	source string
	re     *regexp.Regexp // nil matches everything
	steps  int            // maximum cost per character
}

// Limits of patterns: a short one can compile to millions of states.
const (
	maxPatternSteps = 4_000
	maxMatchSteps   = 200_000_000
)

func (p pattern) String() string { return p.source }

func (p pattern) MatchString(text string) bool {
	return p.re == nil || p.steps*len(text) > maxMatchSteps || p.re.MatchString(text)
}

// engine never fails: relax has removed patterns that do not compile wherever that matters, and any
// others match everything.
func engine(source string) (jsonschema.Regexp, error) {
	p, err := compilePattern(source)
	if err != nil {
		return pattern{source: source}, nil
	}
	return p, nil
}

func compilePattern(source string) (pattern, error) {
	text, err := fromECMA(source)
	if err != nil {
		return pattern{}, err
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return pattern{}, err
	}
	machine, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return pattern{}, err
	}
	if len(machine.Inst) > maxPatternSteps {
		return pattern{}, errors.New("validate: pattern is too large")
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return pattern{}, err
	}
	return pattern{source: source, re: re, steps: len(machine.Inst)}, nil
}

const (
	ecmaSpaces = `\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	ecmaDot    = `[^\n\r\x{2028}\x{2029}]`
)

// fromECMA rewrites an ECMAScript pattern (u flag) for RE2.
func fromECMA(source string) (string, error) {
	var (
		out     strings.Builder
		inClass bool
	)
	out.Grow(len(source) + 8)
	for i := 0; i < len(source); {
		switch c := source[i]; {
		case c == '\\':
			text, n, err := fromEscape(source[i:], inClass)
			if err != nil {
				return "", err
			}
			out.WriteString(text)
			i += n
			continue
		case inClass && c == '[':
			out.WriteString(`\[`) // RE2 would read [: as the start of a class name
		case inClass && c == ']':
			inClass = false
			out.WriteByte(c)
		case inClass:
			out.WriteByte(c)
		case c == '[' && strings.HasPrefix(source[i:], "[^]"):
			out.WriteString(`(?s:.)`)
			i += 3
			continue
		case c == '[' && strings.HasPrefix(source[i:], "[]"):
			out.WriteString(`[^\x00-\x{10FFFF}]`)
			i += 2
			continue
		case c == '[':
			inClass = true
			out.WriteByte(c)
			if strings.HasPrefix(source[i+1:], "^") {
				out.WriteByte('^')
				i++
			}
		case c == '.':
			out.WriteString(ecmaDot)
		default:
			out.WriteByte(c)
		}
		i++
	}
	return out.String(), nil
}

// fromEscape rewrites the escape at the start of text and returns its length.
func fromEscape(text string, inClass bool) (string, int, error) {
	if len(text) < 2 {
		return "", 0, fmt.Errorf("validate: pattern ends in a backslash")
	}
	switch c := text[1]; c {
	case 'd', 'D', 'w', 'W', 'f', 'n', 'r', 't', 'v':
		return text[:2], 2, nil
	case 'b':
		if inClass {
			return `\x08`, 2, nil
		}
		return `\b`, 2, nil
	case 'B':
		if !inClass {
			return `\B`, 2, nil
		}
	case 's':
		if inClass {
			return ecmaSpaces, 2, nil
		}
		return "[" + ecmaSpaces + "]", 2, nil
	case 'S':
		if !inClass {
			return "[^" + ecmaSpaces + "]", 2, nil
		}
	case '0':
		if len(text) == 2 || !isDigit(text[2]) {
			return `\x00`, 2, nil
		}
	case 'c':
		if len(text) >= 3 && (text[2]|0x20) >= 'a' && (text[2]|0x20) <= 'z' {
			return fmt.Sprintf(`\x%02x`, text[2]&0x1F), 3, nil
		}
	case 'x':
		if len(text) >= 4 {
			if _, err := strconv.ParseUint(text[2:4], 16, 8); err == nil {
				return text[:4], 4, nil
			}
		}
	case 'u':
		return fromUnicode(text)
	case 'p', 'P':
		return fromProperty(text)
	default:
		if c < 0x80 && !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') {
			return text[:2], 2, nil
		}
	}
	return "", 0, fmt.Errorf("validate: pattern escape %q has no counterpart", text[:2])
}

// fromUnicode rewrites \uXXXX, a surrogate pair, and \u{X…}.
func fromUnicode(text string) (string, int, error) {
	if strings.HasPrefix(text, `\u{`) {
		if end := strings.IndexByte(text, '}'); end > 3 {
			if r, err := strconv.ParseUint(text[3:end], 16, 32); err == nil && r <= 0x10FFFF && !utf16.IsSurrogate(rune(r)) {
				return fmt.Sprintf(`\x{%x}`, r), end + 1, nil
			}
		}
		return "", 0, fmt.Errorf("validate: pattern has a broken code point")
	}
	raw := []byte(text)
	unit, ok := hex4(raw, 2)
	if !ok {
		return "", 0, fmt.Errorf("validate: pattern has a broken code point")
	}
	if !utf16.IsSurrogate(rune(unit)) {
		return fmt.Sprintf(`\x{%x}`, unit), 6, nil
	}
	if strings.HasPrefix(text[6:], `\u`) {
		if low, ok := hex4(raw, 8); ok {
			if r := utf16.DecodeRune(rune(unit), rune(low)); r != 0xFFFD {
				return fmt.Sprintf(`\x{%x}`, r), 12, nil
			}
		}
	}
	return "", 0, fmt.Errorf("validate: pattern names half a character")
}

// fromProperty rewrites \p{Script=Greek} and similar to the bare value that RE2 expects.
func fromProperty(text string) (string, int, error) {
	end := strings.IndexByte(text, '}')
	if !strings.HasPrefix(text[2:], "{") || end < 0 {
		return "", 0, fmt.Errorf("validate: pattern has a broken property")
	}
	name, value, found := strings.Cut(text[3:end], "=")
	if found {
		switch name {
		case "Script", "sc", "General_Category", "gc":
			name = value
		default:
			return "", 0, fmt.Errorf("validate: pattern property has no counterpart")
		}
	}
	return text[:2] + "{" + name + "}", end + 1, nil
}
