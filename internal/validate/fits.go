package validate

import (
	"strconv"
	"unicode/utf8"
)

// match reads the value at i and returns the index after it, or -1 if the full validator must
// decide: the value does not match, or its bytes alone do not decide it (escapes in a relevant
// string, exponents, duplicate keys, invalid JSON).
func (p *plan) match(s *scanner, i, depth int) int {
	if i >= len(s.raw) {
		return -1
	}
	if p.free {
		return s.value(i, depth)
	}
	switch c := s.raw[i]; c {
	case '{':
		if p.types&isObject == 0 {
			return -1
		}
		return p.fitsObject(s, i, depth)
	case '[':
		if p.types&isArray == 0 {
			return -1
		}
		return p.fitsArray(s, i, depth)
	case '"':
		if p.types&isString == 0 {
			return -1
		}
		return p.fitsText(s, i)
	case 't':
		return s.literalOf(i, "true", p.types&isBoolean)
	case 'f':
		return s.literalOf(i, "false", p.types&isBoolean)
	case 'n':
		return s.literalOf(i, "null", p.types&isNull)
	default:
		if p.types&(isInteger|isNumber) == 0 || c != '-' && !isDigit(c) {
			return -1
		}
		return p.fitsNumber(s, i)
	}
}

func (s *scanner) literalOf(i int, word string, allowed typeSet) int {
	if allowed == 0 {
		return -1
	}
	return s.literal(i, word)
}

func (p *plan) fitsObject(s *scanner, i, depth int) int {
	if depth > s.maxDepth {
		return -1
	}
	var (
		seen  uint64
		count int
	)
	i = s.space(i + 1)
	if i < len(s.raw) && s.raw[i] == '}' {
		return p.ended(i+1, seen, count)
	}
	for ; ; count++ {
		k, next := s.key(i)
		if next < 0 || k.escaped {
			return -1
		}
		switch at := p.findKey(s.raw[k.start:k.end]); {
		case at >= 0:
			if seen&(1<<at) != 0 {
				return -1
			}
			seen |= 1 << at
			i = p.props[at].plan.match(s, next, depth+1)
		case p.closed:
			return -1
		case p.extra != nil:
			i = p.extra.match(s, next, depth+1)
		default:
			i = s.value(next, depth+1)
		}
		if i < 0 {
			return -1
		}
		more, next := s.more(i, '}')
		if !more {
			return p.ended(next, seen, count+1)
		}
		i = next
	}
}

// ended checks the requirements that depend on the whole object.
func (p *plan) ended(end int, seen uint64, count int) int {
	if seen&p.required != p.required {
		return -1
	}
	return p.counted(end, count)
}

func (p *plan) counted(end, count int) int {
	if count < p.minCount || p.maxCount >= 0 && count > p.maxCount {
		return -1
	}
	return end
}

// findKey returns the index of a property, or -1.
func (p *plan) findKey(name []byte) int {
	for i := range p.props {
		if p.props[i].name == string(name) {
			return i
		}
	}
	return -1
}

func (p *plan) fitsArray(s *scanner, i, depth int) int {
	if depth > s.maxDepth {
		return -1
	}
	i = s.space(i + 1)
	if i < len(s.raw) && s.raw[i] == ']' {
		return p.counted(i+1, 0)
	}
	for count := 1; ; count++ {
		if p.items != nil {
			i = p.items.match(s, i, depth+1)
		} else {
			i = s.value(i, depth+1)
		}
		if i < 0 {
			return -1
		}
		more, next := s.more(i, ']')
		if !more {
			return p.counted(next, count)
		}
		i = next
	}
}

func (p *plan) fitsText(s *scanner, i int) int {
	end, escaped := s.text(i)
	if end < 0 {
		return -1
	}
	limited := p.minLen > 0 || p.maxLen >= 0
	if escaped && (limited || p.choices != nil) {
		return -1
	}
	text := s.raw[i+1 : end-1]
	if limited {
		if n := utf8.RuneCount(text); n < p.minLen || p.maxLen >= 0 && n > p.maxLen {
			return -1
		}
	}
	if p.choices == nil {
		return end
	}
	if _, ok := p.choices[string(text)]; !ok {
		return -1
	}
	return end
}

func (p *plan) fitsNumber(s *scanner, i int) int {
	end := s.number(i)
	if end < 0 {
		return -1
	}
	text := s.raw[i:end]
	integer := true
	for _, c := range text {
		switch c {
		case '.':
			integer = false // 1.0 is an integer too; the full validator handles that case
		case 'e', 'E':
			return -1
		}
	}
	if !integer && p.types&isNumber == 0 {
		return -1
	}
	if !p.bounded {
		return end
	}
	if !integer || len(text) > 18 {
		return -1
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < p.low || n > p.high {
		return -1
	}
	return end
}
