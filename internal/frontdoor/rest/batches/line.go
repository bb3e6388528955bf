package batches

import (
	"bytes"
	"time"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/validate"
)

// readPlainItem is a fast parser for the usual form of a line: only known members, strings without
// escapes, and an object as arguments. It makes the same checks as readItem. ok is false for all
// other lines, which readItem parses or refuses.
func (l lineReader) readPlainItem(raw []byte) (rec batch.Line, ok bool) {
	if validate.Value(raw, l.limits.ArgumentBytes+submit.EnvelopeBytes, l.limits.ArgumentDepth+1) != nil {
		return rec, false
	}
	var arguments []byte
	var scan rawjson.Scanner
	scan.Reset(raw)
	ok = scan.Object(func(name string) bool {
		from := scan.At()
		if !scan.Value() {
			return false
		}
		value := raw[from:scan.At()]
		var into *string
		switch name {
		case "custom_id":
			into = &rec.CustomID
		case "server":
			into = (*string)(&rec.Server)
		case "tool":
			into = &rec.Tool
		case "arguments":
			arguments = value
			return value[0] == '{'
		default:
			return false
		}
		if value[0] != '"' || bytes.IndexByte(value, '\\') >= 0 {
			return false
		}
		*into = string(value[1 : len(value)-1])
		return true
	})
	if !ok || rec.Server == "" || rec.Tool == "" || len(rec.CustomID) > maxCustomID {
		return rec, false
	}
	if arguments == nil {
		arguments = []byte("{}")
	}
	rec.Accepted, rec.Arguments = time.Now().UTC(), bytes.Clone(arguments)
	return rec, true
}
