package batch

import (
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/ledger/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// The id of a durable call says where it stands, so that any front door finds it
// without an index: "call_", the tail of its journal's id, "-", one letter for the
// kind of journal, and the index in base 36.
const (
	callPrefix  = "call_"
	batchPrefix = "batch_"
	lanePrefix  = "lane_"
)

var letters = map[journal.Kind]byte{journal.Batch: 'b', journal.Lane: 's'}

// newJournalID returns the id of a new journal: its prefix is its kind.
func newJournalID(k journal.Kind) string { return schema.NewID(string(k)) }

// CallID returns the id of a call of a journal.
func CallID(journalID string, index uint64) string {
	letter, tail := letters[journal.Lane], strings.TrimPrefix(journalID, lanePrefix)
	if after, ok := strings.CutPrefix(journalID, batchPrefix); ok {
		letter, tail = letters[journal.Batch], after
	}
	var room [64]byte // more than an id takes
	buf := append(room[:0], callPrefix...)
	buf = append(buf, tail...)
	buf = append(buf, '-', letter)
	return string(strconv.AppendUint(buf, index, 36))
}

// ParseCallID returns where a durable call stands; ok is false for the id of a
// call that stands in no journal.
func ParseCallID(id string) (journalID string, index uint64, ok bool) {
	rest, ok := strings.CutPrefix(id, callPrefix)
	if !ok {
		return "", 0, false
	}
	tail, place, ok := strings.Cut(rest, "-")
	if !ok || len(tail) != 26 || len(place) < 2 || !plain(tail) {
		return "", 0, false
	}
	prefix := lanePrefix
	switch place[0] {
	case letters[journal.Batch]:
		prefix = batchPrefix
	case letters[journal.Lane]:
	default:
		return "", 0, false
	}
	index, err := strconv.ParseUint(place[1:], 36, 64)
	if err != nil || strconv.FormatUint(index, 36) != place[1:] {
		return "", 0, false // one call has one id
	}
	return prefix + tail, index, true
}

func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}
