package batch

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"hash"
	"strconv"
	"strings"
	"sync"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// The id of a durable call contains its position, so that any front door finds it without an
// index: "call_", the tail of its journal's id, "-", one letter for the kind of journal, the
// index in base 36, "-", and a check. The check is a keyed MAC of the position and the principal,
// so that an id cannot be derived from another one, and another principal's id is refused before
// anything is read.
const (
	callPrefix  = "call_"
	batchPrefix = "batch_"
	lanePrefix  = "lane_"

	// checkLen is the length of the check in characters of 5 bits.
	checkLen = 12
)

var (
	letters       = map[journal.Kind]byte{journal.Batch: 'b', journal.Lane: 's'}
	checkEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)
)

// newJournalID returns the id of a new journal. The prefix is the kind of the journal.
func newJournalID(k journal.Kind) schema.BatchID { return schema.BatchID(schema.NewID(string(k))) }

// IDs creates and verifies the ids of durable calls. All front doors must have the same
// secret; see [journal.Store.Secret]. It is safe for concurrent use.
type IDs struct {
	macs sync.Pool // of hash.Hash
}

// NewIDs returns IDs that use the given secret.
func NewIDs(secret []byte) *IDs {
	i := &IDs{}
	i.macs.New = func() any { return hmac.New(sha256.New, secret) }
	return i
}

// CallID returns the id of the call at index of a journal, for the named principal.
func (i *IDs) CallID(journalID schema.BatchID, index uint64, principal string) schema.CallID {
	var space [80]byte // longer than any id
	buf := appendJournal(space[:0], journalID)
	buf = strconv.AppendUint(buf, index, 36)
	buf = append(buf, '-')
	return schema.CallID(i.check(buf, journalID, index, principal))
}

// appendJournal appends the beginning of the ids of all calls of a journal, and of no others.
func appendJournal(dst []byte, journalID schema.BatchID) []byte {
	letter, tail := letters[journal.Lane], strings.TrimPrefix(string(journalID), lanePrefix)
	if after, ok := strings.CutPrefix(string(journalID), batchPrefix); ok {
		letter, tail = letters[journal.Batch], after
	}
	dst = append(dst, callPrefix...)
	dst = append(dst, tail...)
	return append(dst, '-', letter)
}

// Find verifies the id of a durable call and returns its journal and index. ok is false for any
// other id, and for the id of another principal's call. It reads nothing from the store.
func (i *IDs) Find(id schema.CallID, principal string) (journalID schema.BatchID, index uint64, ok bool) {
	journalID, index, ok = ParseCallID(id)
	if !ok {
		return "", 0, false
	}
	var space [checkLen]byte
	want := i.check(space[:0], journalID, index, principal)
	if !hmac.Equal(want, []byte(id[len(id)-checkLen:])) {
		return "", 0, false
	}
	return journalID, index, true
}

// check appends the check characters of an id to dst.
func (i *IDs) check(dst []byte, journalID schema.BatchID, index uint64, principal string) []byte {
	mac := i.macs.Get().(hash.Hash) // the pool contains only this type
	defer i.macs.Put(mac)
	mac.Reset()
	var space [128]byte
	text := binary.BigEndian.AppendUint64(space[:0], index)
	text = binary.AppendUvarint(text, uint64(len(journalID)))
	mac.Write(append(append(text, journalID...), principal...))
	var sum [sha256.Size]byte
	return checkEncoding.AppendEncode(dst, mac.Sum(sum[:0])[:checkLen])[:len(dst)+checkLen]
}

// ParseCallID returns the position of a durable call from its id. ok is false for the id of a call
// that is in no journal. It does not verify the id: use [IDs.Find] before showing the call to a
// caller.
func ParseCallID(id schema.CallID) (journalID schema.BatchID, index uint64, ok bool) {
	rest, ok := strings.CutPrefix(string(id), callPrefix)
	if !ok {
		return "", 0, false
	}
	tail, rest, ok := strings.Cut(rest, "-")
	if !ok || len(tail) != 26 || !plain(tail) {
		return "", 0, false
	}
	place, check, ok := strings.Cut(rest, "-")
	if !ok || len(place) < 2 || len(check) != checkLen || !plain(check) {
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
		return "", 0, false // an index has exactly one encoding
	}
	return schema.BatchID(prefix + tail), index, true
}

func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// requester returns the principal of a call of the journal.
func requester(m *journal.Manifest, c *journal.CallRecord) schema.Principal {
	if c.Principal.Name != "" {
		return c.Principal
	}
	return m.Principal
}

// of returns the id of a call of the journal.
func (i *IDs) of(m *journal.Manifest, c *journal.CallRecord) schema.CallID {
	return i.CallID(m.ID, c.Index, requester(m, c).Name)
}
