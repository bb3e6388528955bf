package session

import (
	"bytes"

	"github.com/callyard/callyard/internal/kit/rawjson"
)

// frame holds the top-level members of one JSON-RPC message. The slices point into the scanned
// text and are nil if the member is absent.
type frame struct {
	id, method, params, result, fault []byte
	// toolError and resultType are the members of the result that decide the outcome of a call.
	toolError  bool
	resultType []byte
}

// scanner reads messages. It can be reused. It is not safe for concurrent use.
type scanner struct{ rawjson.Scanner }

// frame reads one JSON-RPC message. It returns false for text that is not exactly one JSON
// object; f then holds the members before the fault. A message without a result is made readable,
// because its parts reach callers; results are made so where they are used.
func (s *scanner) frame(text []byte, f *frame) bool {
	ok := s.members(text, f)
	if !ok || f.result != nil {
		return ok
	}
	if readable := rawjson.Readable(text); !bytes.Equal(readable, text) {
		return s.members(readable, f)
	}
	return true
}

// members reads the members of a message. A large result is scanned only once: its members are
// read in the same pass.
func (s *scanner) members(text []byte, f *frame) bool {
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

// member records the members of a result that decide the outcome of a call.
func (f *frame) member(key string, value []byte) {
	switch key {
	case "isError":
		f.toolError = string(value) == "true"
	case "resultType":
		f.resultType = value
	}
}
