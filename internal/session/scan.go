package session

import (
	"encoding/binary"
	"encoding/json"
)

// maxNesting is how deep JSON from a server may nest, the limit of encoding/json.
const maxNesting = 10000

// scanner walks JSON text once, left to right, and checks its grammar without
// building anything. Its cost is linear in the text and its memory is one bit
// for each open bracket. A scanner may be used again; it is not safe for
// concurrent use.
type scanner struct {
	text  []byte
	at    int
	kinds []uint64 // one bit for each open bracket: 1 for an object
}

// frame is what the top level of one JSON-RPC message holds. The slices point
// into the scanned text and are nil where the member is absent.
type frame struct {
	id, method, params, result, fault []byte
	// toolError and resultType are the members of the result that decide how a
	// call ended.
	toolError  bool
	resultType []byte
}

// frame reads one JSON-RPC message. It returns false for text that is not
// exactly one JSON object; what was read up to the fault stays in f.
func (s *scanner) frame(text []byte, f *frame) bool {
	*f = frame{}
	s.text, s.at = text, 0
	ok := s.object(func(key string, from, to int) {
		value := s.text[from:to]
		switch key {
		case "id":
			f.id = value
		case "method":
			f.method = value
		case "params":
			f.params = value
		case "error":
			f.fault = value
		}
	}, f)
	s.space()
	return ok && s.at == len(s.text)
}

// object reads an object and calls visit with each key and the bounds of its
// value. Where f is set, the value of "result" is looked into on the way, so
// that a large result is walked once.
func (s *scanner) object(visit func(key string, from, to int), f *frame) bool {
	s.space()
	if !s.take('{') {
		return false
	}
	s.space()
	if s.take('}') {
		return true
	}
	for {
		s.space()
		key, ok := s.key()
		if !ok {
			return false
		}
		s.space()
		from := s.at
		if f != nil && key == "result" {
			f.toolError, f.resultType = false, nil
			if s.at < len(s.text) && s.text[s.at] == '{' {
				ok = s.object(func(key string, from, to int) { f.member(key, s.text[from:to]) }, nil)
			} else {
				ok = s.value()
			}
			f.result = s.text[from:s.at]
		} else {
			ok = s.value()
		}
		if !ok {
			return false
		}
		visit(key, from, s.at)
		s.space()
		if s.take(',') {
			continue
		}
		return s.take('}')
	}
}

// member notes the members of a result that decide how a call ended.
func (f *frame) member(key string, value []byte) {
	switch key {
	case "isError":
		f.toolError = string(value) == "true"
	case "resultType":
		f.resultType = value
	}
}

// key reads a member name and its colon. Names are compared as they decode,
// like every JSON reader does.
func (s *scanner) key() (string, bool) {
	from := s.at
	plain, ok := s.str()
	if !ok {
		return "", false
	}
	raw := s.text[from:s.at]
	s.space()
	if !s.take(':') {
		return "", false
	}
	if plain {
		return known(raw[1 : len(raw)-1]), true
	}
	var name string
	if json.Unmarshal(raw, &name) != nil {
		return "", false
	}
	return name, true
}

// known spares the allocation for the names that matter on the hot path.
func known(name []byte) string {
	switch string(name) {
	case "jsonrpc":
		return "jsonrpc"
	case "id":
		return "id"
	case "method":
		return "method"
	case "params":
		return "params"
	case "result":
		return "result"
	case "error":
		return "error"
	case "isError":
		return "isError"
	case "resultType":
		return "resultType"
	case "content":
		return "content"
	case "structuredContent":
		return "structuredContent"
	case "_meta":
		return "_meta"
	case "progressToken":
		return "progressToken"
	}
	return string(name)
}

// value skips one value of any kind, checking it.
func (s *scanner) value() bool {
	depth := 0
	for {
		s.space()
		if s.at >= len(s.text) {
			return false
		}
		ok := true
		switch c := s.text[s.at]; c {
		case '{', '[':
			s.at++
			s.space()
			if s.take(c + 2) { // '}' and ']' stand two after their opening brackets
				break
			}
			if depth++; depth > maxNesting {
				return false
			}
			s.push(depth, c == '{')
			if c == '{' && !s.name() {
				return false
			}
			continue
		case '"':
			_, ok = s.str()
		case 't':
			ok = s.literal("true")
		case 'f':
			ok = s.literal("false")
		case 'n':
			ok = s.literal("null")
		default:
			ok = s.number()
		}
		if !ok {
			return false
		}
		for more := false; !more; {
			if depth == 0 {
				return true
			}
			s.space()
			object := s.isObject(depth)
			switch {
			case s.take(','):
				if object {
					s.space()
					if !s.name() {
						return false
					}
				}
				more = true
			case object && s.take('}'), !object && s.take(']'):
				depth--
			default:
				return false
			}
		}
	}
}

func (s *scanner) push(depth int, object bool) {
	word, bit := (depth-1)/64, uint64(1)<<((depth-1)%64)
	if word == len(s.kinds) {
		s.kinds = append(s.kinds, 0)
	}
	if object {
		s.kinds[word] |= bit
	} else {
		s.kinds[word] &^= bit
	}
}

func (s *scanner) isObject(depth int) bool {
	return s.kinds[(depth-1)/64]&(uint64(1)<<((depth-1)%64)) != 0
}

// name skips a member name and its colon.
func (s *scanner) name() bool {
	if _, ok := s.str(); !ok {
		return false
	}
	s.space()
	return s.take(':')
}

// str skips a string. plain says that it holds no escape.
func (s *scanner) str() (plain, ok bool) {
	if !s.take('"') {
		return false, false
	}
	plain = true
	text, i := s.text, s.at
	for {
		// Eight bytes at a time while none of them is a quote, a backslash or a
		// control character.
		for i+8 <= len(text) && !special(binary.LittleEndian.Uint64(text[i:])) {
			i += 8
		}
		if i >= len(text) {
			return plain, false
		}
		switch c := text[i]; {
		case c == '"':
			s.at = i + 1
			return plain, true
		case c < 0x20:
			return plain, false
		case c != '\\':
			i++
			continue
		}
		plain = false
		if i+1 >= len(text) {
			return plain, false
		}
		switch text[i+1] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			i += 2
		case 'u':
			if i+6 > len(text) || !hex(text[i+2]) || !hex(text[i+3]) || !hex(text[i+4]) || !hex(text[i+5]) {
				return plain, false
			}
			i += 6
		default:
			return plain, false
		}
	}
}

// special reports whether any byte of w is '"', '\\' or below 0x20. It may say
// yes for a harmless byte that follows a special one, never no for a special one.
func special(w uint64) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote := w ^ (ones * '"')
	slash := w ^ (ones * '\\')
	return ((w-ones*0x20)&^w|(quote-ones)&^quote|(slash-ones)&^slash)&high != 0
}

func hex(c byte) bool {
	return c-'0' < 10 || c|0x20 >= 'a' && c|0x20 <= 'f'
}

func (s *scanner) number() bool {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return false
	}
	if s.take('.') && !s.digits() {
		return false
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	from := s.at
	for s.at < len(s.text) && s.text[s.at]-'0' < 10 {
		s.at++
	}
	return s.at > from
}

func (s *scanner) literal(word string) bool {
	if len(s.text)-s.at < len(word) || string(s.text[s.at:s.at+len(word)]) != word {
		return false
	}
	s.at += len(word)
	return true
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

func (s *scanner) take(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// members calls visit with each top-level member of an object and reports
// whether text is exactly one JSON object.
func members(text []byte, visit func(key string, value []byte)) bool {
	s := scanner{text: text}
	ok := s.object(func(key string, from, to int) { visit(key, text[from:to]) }, nil)
	s.space()
	return ok && s.at == len(text)
}

// isObject reports whether text is exactly one JSON object.
func isObject(text []byte) bool {
	s := scanner{text: text}
	s.space()
	if s.at >= len(text) || text[s.at] != '{' || !s.value() {
		return false
	}
	s.space()
	return s.at == len(text)
}
