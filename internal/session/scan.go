package session

import "github.com/callyard/callyard/internal/kit/rawjson"

// frame is what the top level of one JSON-RPC message holds. The slices point
// into the scanned text and are nil where the member is absent.
type frame struct {
	id, method, params, result, fault []byte
	// toolError and resultType are the members of the result that decide how a
	// call ended.
	toolError  bool
	resultType []byte
}

// scanner reads messages. It may be used again; it is not safe for concurrent use.
type scanner struct{ rawjson.Scanner }

// frame reads one JSON-RPC message. It returns false for text that is not
// exactly one JSON object; what was read up to the fault stays in f. A large result is
// walked once: it is looked into on the way.
func (s *scanner) frame(text []byte, f *frame) bool {
	*f = frame{}
	s.Reset(text)
	return s.Object(func(key string) bool {
		from := s.At()
		if key == "result" {
			return s.result(text, f)
		}
		if !s.Value() {
			return false
		}
		value := text[from:s.At()]
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
		return true
	}) && s.End()
}

func (s *scanner) result(text []byte, f *frame) (ok bool) {
	f.toolError, f.resultType = false, nil
	from := s.At()
	if s.Peek() == '{' {
		ok = s.Object(func(key string) bool {
			from := s.At()
			if !s.Value() {
				return false
			}
			f.member(key, text[from:s.At()])
			return true
		})
	} else {
		ok = s.Value()
	}
	f.result = text[from:s.At()]
	return ok
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
