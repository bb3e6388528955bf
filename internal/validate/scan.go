package validate

// scanner reads JSON text once, strictly (RFC 8259, UTF-8, unique keys), without decoding it. Its
// methods take the index at which a value starts and return the index after it. They return -1
// after recording a fault. Valid input causes no allocation, except for objects with very many
// keys.
type scanner struct {
	raw      []byte
	maxDepth int

	wrong string   // the fault, after a method returned -1
	at    int      // the byte offset of the fault
	path  []string // pointer tokens of the fault, innermost first
}

// fewKeys is the number of keys of one object that are compared pairwise. With more, a map keeps
// the cost linear.
const fewKeys = 16

// tooDeep is the only fault whose sentence contains the limit.
const tooDeep = "the nesting exceeds the limit"

// key is the position of a property name, without quotes.
type key struct {
	start, end int
	escaped    bool
}

func (s *scanner) fail(at int, wrong string) int {
	s.at, s.wrong = at, wrong
	return -1
}

// document reads one value surrounded only by white space.
func (s *scanner) document() int {
	if len(s.raw) >= 3 && s.raw[0] == 0xEF && s.raw[1] == 0xBB && s.raw[2] == 0xBF {
		return s.fail(0, "a byte order mark is not allowed")
	}
	i := s.value(s.space(0), 1)
	if i < 0 {
		return -1
	}
	if i = s.space(i); i != len(s.raw) {
		return s.fail(i, "unexpected data follows the value")
	}
	return i
}

func (s *scanner) space(i int) int {
	for i < len(s.raw) {
		switch s.raw[i] {
		case ' ', '\t', '\n', '\r':
			i++
		default:
			return i
		}
	}
	return i
}

// value reads any value. depth is the number of containers around it, including itself.
func (s *scanner) value(i, depth int) int {
	if i >= len(s.raw) {
		return s.fail(i, "a value is missing")
	}
	switch c := s.raw[i]; c {
	case '{':
		return s.object(i, depth)
	case '[':
		return s.array(i, depth)
	case '"':
		end, _ := s.text(i)
		return end
	case 't':
		return s.literal(i, "true")
	case 'f':
		return s.literal(i, "false")
	case 'n':
		return s.literal(i, "null")
	default:
		if c == '-' || isDigit(c) {
			return s.number(i)
		}
		return s.fail(i, "a value cannot begin with this character")
	}
}

func (s *scanner) object(i, depth int) int {
	if depth > s.maxDepth {
		return s.fail(i, tooDeep)
	}
	i = s.space(i + 1)
	if i < len(s.raw) && s.raw[i] == '}' {
		return i + 1
	}
	var (
		few  [fewKeys]key
		n    int
		many map[string]struct{}
	)
	for {
		k, next := s.key(i)
		if next < 0 {
			return -1
		}
		if n < fewKeys {
			for j := range n {
				if s.sameKey(few[j], k) {
					return s.twice(k)
				}
			}
			few[n] = k
			n++
		} else {
			if many == nil {
				many = make(map[string]struct{}, 4*fewKeys)
				for _, seen := range few {
					many[s.keyText(seen)] = struct{}{}
				}
			}
			name := s.keyText(k)
			if _, seen := many[name]; seen {
				return s.twice(k)
			}
			many[name] = struct{}{}
		}
		if i = s.value(next, depth+1); i < 0 {
			return s.within(k)
		}
		more, next := s.more(i, '}')
		if !more {
			return next
		}
		i = next
	}
}

func (s *scanner) array(i, depth int) int {
	if depth > s.maxDepth {
		return s.fail(i, tooDeep)
	}
	i = s.space(i + 1)
	if i < len(s.raw) && s.raw[i] == ']' {
		return i + 1
	}
	for index := 0; ; index++ {
		if i = s.value(i, depth+1); i < 0 {
			return s.item(index)
		}
		more, next := s.more(i, ']')
		if !more {
			return next
		}
		i = next
	}
}

// key reads a property name and the colon. It returns the index of the property's value.
func (s *scanner) key(i int) (key, int) {
	if i >= len(s.raw) || s.raw[i] != '"' {
		return key{}, s.fail(i, "a property name in double quotes is missing")
	}
	end, escaped := s.text(i)
	if end < 0 {
		return key{}, -1
	}
	k := key{start: i + 1, end: end - 1, escaped: escaped}
	i = s.space(end)
	if i >= len(s.raw) || s.raw[i] != ':' {
		return key{}, s.fail(i, "a colon after the property name is missing")
	}
	return k, s.space(i + 1)
}

// more reads what follows a member: a comma (true, with the index of the next member) or the
// closing bracket (false, with the index after it, or -1).
func (s *scanner) more(i int, closing byte) (bool, int) {
	i = s.space(i)
	if i >= len(s.raw) {
		return false, s.fail(i, "the text ends too early")
	}
	switch s.raw[i] {
	case ',':
		return true, s.space(i + 1)
	case closing:
		return false, i + 1
	default:
		return false, s.fail(i, "a comma or a closing bracket is missing")
	}
}

func (s *scanner) literal(i int, word string) int {
	if len(s.raw)-i < len(word) || string(s.raw[i:i+len(word)]) != word {
		return s.fail(i, "a value cannot begin with this character")
	}
	return i + len(word)
}

func (s *scanner) number(i int) int {
	if s.raw[i] == '-' {
		i++
	}
	switch {
	case i >= len(s.raw) || !isDigit(s.raw[i]):
		return s.fail(i, "a number has no digit here")
	case s.raw[i] == '0':
		i++
	default:
		i = s.digits(i)
	}
	if i < len(s.raw) && s.raw[i] == '.' {
		if i++; i >= len(s.raw) || !isDigit(s.raw[i]) {
			return s.fail(i, "a number has no digit after its point")
		}
		i = s.digits(i)
	}
	if i < len(s.raw) && (s.raw[i] == 'e' || s.raw[i] == 'E') {
		if i++; i < len(s.raw) && (s.raw[i] == '+' || s.raw[i] == '-') {
			i++
		}
		if i >= len(s.raw) || !isDigit(s.raw[i]) {
			return s.fail(i, "a number has no digit in its exponent")
		}
		i = s.digits(i)
	}
	return i
}

func (s *scanner) digits(i int) int {
	for i < len(s.raw) && isDigit(s.raw[i]) {
		i++
	}
	return i
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
