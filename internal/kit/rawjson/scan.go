package rawjson

import (
	"encoding/binary"
	"encoding/json"
	"math/bits"
)

// MaxNesting is the maximum nesting depth, the same as in encoding/json.
const MaxNesting = 10000

// ExceedsDepth reports whether objects and arrays in text nest deeper than the given depth. The text need
// not be JSON.
func ExceedsDepth(text []byte, than int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++ // skip the escaped byte
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > than {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// Scanner reads JSON text once, left to right, and checks its grammar without
// building anything. Call [Scanner.Reset] before use; a scanner may be
// reused. It is not safe for concurrent use.
type Scanner struct {
	text  []byte
	at    int
	first uint64   // one bit for each of the first 64 open brackets: 1 for an object
	more  []uint64 // the same for deeper ones
}

// Reset starts to scan another text.
func (s *Scanner) Reset(text []byte) { s.text, s.at = text, 0 }

// At returns the index of the next byte.
func (s *Scanner) At() int { return s.at }

// Peek skips white space and returns the next byte, or 0 at the end.
func (s *Scanner) Peek() byte {
	s.space()
	if s.at == len(s.text) {
		return 0
	}
	return s.text[s.at]
}

// End reports whether only white space is left.
func (s *Scanner) End() bool {
	s.space()
	return s.at == len(s.text)
}

// Object reads an object. It calls member with the decoded name of each member. member must read
// the value, with [Scanner.Value] or Object. Object stops and returns false if member returns
// false, or if the text is not an object.
func (s *Scanner) Object(member func(name string) bool) bool {
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
		name, ok := s.key()
		if !ok {
			return false
		}
		s.space()
		if !member(name) {
			return false
		}
		s.space()
		if s.take(',') {
			continue
		}
		return s.take('}')
	}
}

// Array reads an array. It calls element at each element. element must read the value, with
// [Scanner.Value] or another method. Array stops and returns false if element returns false, or if
// the text is not an array.
func (s *Scanner) Array(element func() bool) bool {
	s.space()
	if !s.take('[') {
		return false
	}
	s.space()
	if s.take(']') {
		return true
	}
	for {
		s.space()
		if !element() {
			return false
		}
		s.space()
		if s.take(',') {
			continue
		}
		return s.take(']')
	}
}

// key reads a member name and its colon. It returns the decoded name, because every JSON reader
// compares decoded names.
func (s *Scanner) key() (string, bool) {
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

// known avoids the allocation for the names that occur on the hot path.
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
	case "name":
		return "name"
	case "arguments":
		return "arguments"
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
	case "io.modelcontextprotocol/protocolVersion":
		return "io.modelcontextprotocol/protocolVersion"
	case "io.modelcontextprotocol/clientCapabilities":
		return "io.modelcontextprotocol/clientCapabilities"
	case "io.modelcontextprotocol/clientInfo":
		return "io.modelcontextprotocol/clientInfo"
	case "custom_id":
		return "custom_id"
	case "server":
		return "server"
	case "tool":
		return "tool"
	}
	return string(name)
}

// Value skips and checks one value of any type.
func (s *Scanner) Value() bool {
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
			if s.take(c + 2) { // in ASCII, '}' and ']' are two after their opening brackets
				break
			}
			if depth++; depth > MaxNesting {
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

func (s *Scanner) push(depth int, object bool) {
	word := &s.first
	if i := (depth-1)/64 - 1; i >= 0 {
		if i == len(s.more) {
			s.more = append(s.more, 0)
		}
		word = &s.more[i]
	}
	if bit := uint64(1) << ((depth - 1) % 64); object {
		*word |= bit
	} else {
		*word &^= bit
	}
}

func (s *Scanner) isObject(depth int) bool {
	word := s.first
	if i := (depth-1)/64 - 1; i >= 0 {
		word = s.more[i]
	}
	return word&(uint64(1)<<((depth-1)%64)) != 0
}

// name skips a member name and its colon.
func (s *Scanner) name() bool {
	if _, ok := s.str(); !ok {
		return false
	}
	s.space()
	return s.take(':')
}

// str skips a string. plain reports that it contains no escape.
func (s *Scanner) str() (plain, ok bool) {
	if !s.take('"') {
		return false, false
	}
	plain = true
	text, i := s.text, s.at
	for {
		// Eight bytes at a time, up to the first quote, backslash or control character.
		for i+8 <= len(text) {
			if found := special(binary.LittleEndian.Uint64(text[i:])); found != 0 {
				i += bits.TrailingZeros64(found) / 8
				break
			}
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

// special sets the highest bit of each byte of w that is '"', '\\' or below 0x20. It may also set
// that of another byte, but only above a special one.
func special(w uint64) uint64 {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote := w ^ (ones * '"')
	slash := w ^ (ones * '\\')
	return ((w-ones*0x20)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & high
}

func hex(c byte) bool {
	return c-'0' < 10 || c|0x20 >= 'a' && c|0x20 <= 'f'
}

func (s *Scanner) number() bool {
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

func (s *Scanner) digits() bool {
	from := s.at
	for s.at < len(s.text) && s.text[s.at]-'0' < 10 {
		s.at++
	}
	return s.at > from
}

func (s *Scanner) literal(word string) bool {
	if len(s.text)-s.at < len(word) || string(s.text[s.at:s.at+len(word)]) != word {
		return false
	}
	s.at += len(word)
	return true
}

func (s *Scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

func (s *Scanner) take(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}
