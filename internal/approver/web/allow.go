package web

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/kit/jsonpointer"
	"github.com/callyard/callyard/internal/store/ledger"
)

// allowKind is the form that approves a call and allows similar calls. It is recorded as an
// approval.
const allowKind ledger.DecisionKind = "allow"

// span is a validity period for a permission.
type span struct {
	Words string
	For   time.Duration
}

func spans() []span {
	return []span{{"1 hour", time.Hour}, {"8 hours", 8 * time.Hour}, {"1 day", 24 * time.Hour}, {"3 days", 72 * time.Hour}, {"7 days", 7 * 24 * time.Hour}}
}

// scalarValue is a value in the arguments that a permission can fix.
type scalarValue struct {
	Pointer string
	Text    []byte
	Long    int // its size in bytes, if it is too long to show
}

const (
	maxLeaves = 32
	longLeaf  = 300
	samePlace = "same." // prefix of the fields that select a value
)

// scalarValues returns the scalar values in the arguments, in their order. It returns nil if there are
// none, or too many to select from.
func scalarValues(args []byte) (found []scalarValue) {
	d := json.NewDecoder(bytes.NewReader(args))
	ok := walk(d, "", 0, func(pointer string, raw []byte) bool {
		l := scalarValue{Pointer: pointer, Text: raw}
		if len(raw) > longLeaf {
			l.Text, l.Long = nil, len(raw)
		}
		found = append(found, l)
		return len(found) <= maxLeaves
	})
	if !ok {
		return nil
	}
	return found
}

// maxWalk limits the search depth. Arguments are not deeper.
const maxWalk = 64

func walk(d *json.Decoder, at string, depth int, each func(string, []byte) bool) bool {
	var raw json.RawMessage
	if depth > maxWalk || d.Decode(&raw) != nil {
		return false
	}
	raw = bytes.TrimLeft(raw, " \t\r\n")
	inner := json.NewDecoder(bytes.NewReader(raw))
	switch raw[0] {
	case '{':
		_, _ = inner.Token() // cannot fail: the value was decoded above
		for inner.More() {
			key, err := inner.Token()
			name, isName := key.(string)
			if err != nil || !isName || !walk(inner, at+"/"+jsonpointer.Token(name), depth+1, each) {
				return false
			}
		}
		return true
	case '[':
		_, _ = inner.Token()
		for i := 0; inner.More(); i++ {
			if !walk(inner, at+"/"+strconv.Itoa(i), depth+1, each) {
				return false
			}
		}
		return true
	}
	return each(at, raw)
}

// MayAllow reports whether the page offers a permission with this approval. [approval.Desk] makes
// the final decision.
func (p detailPage) MayAllow() bool {
	return p.Blocked == "" && p.State == ledger.Pending && p.NotAgain() == ""
}

// NotAgain returns the reason why this approval cannot include a permission, or "".
func (q *approvalView) NotAgain() string {
	_, why := approval.NoPermission(q.Approval, q.Rule)
	return why
}

// Leaves returns the values that a permission can fix.
func (p detailPage) Leaves() []scalarValue { return scalarValues(p.Arguments) }

// Spans returns the validity periods to select from.
func (detailPage) Spans() []span { return spans() }
