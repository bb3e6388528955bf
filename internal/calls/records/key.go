package records

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"math"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// key is the part of a call id after its prefix: 48 bits of milliseconds and 80 random bits. Keys
// sort by time.
type key [16]byte

const (
	keyText  = 26 // characters of a key in an id
	idPrefix = "call_"
)

// idEncoding is the encoding that schema.NewCallID uses.
var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// IDOfHeld returns the record id of a durable call that is held since the given time. The worker
// that holds the call and the one that runs it after its approval derive the same record id. The
// call's own id, which locates it in its journal, does not contain the time at which it was held.
func IDOfHeld(since time.Time, call schema.CallID) schema.CallID {
	sum := sha256.Sum256([]byte(call))
	var k key
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], uint64(since.UnixMilli())<<16)
	copy(k[:], at[:6])
	copy(k[6:], sum[:])
	return schema.CallID(idPrefix + idEncoding.EncodeToString(k[:]))
}

// keyOf returns the key of an id in the format of schema.NewID.
func keyOf(id string) (k key, ok bool) {
	i := len(id) - keyText
	if i < 2 || i > 64 || id[i-1] != '_' {
		return k, false
	}
	return bareKey(id[i:])
}

// bareKey parses a key without a prefix. It rejects non-canonical encodings, so that a call cannot
// have two ids.
func bareKey(text string) (k key, ok bool) {
	var src, again [keyText]byte
	if copy(src[:], text) != len(text) || len(text) != keyText {
		return k, false
	}
	if n, err := idEncoding.Decode(k[:], src[:]); err != nil || n != len(k) {
		return k, false
	}
	idEncoding.Encode(again[:], k[:])
	return k, again == src
}

func (k key) String() string { return idEncoding.EncodeToString(k[:]) }

// id returns the call id with the standard prefix.
func (k key) id() schema.CallID {
	var b [len(idPrefix) + keyText]byte
	copy(b[:], idPrefix)
	idEncoding.Encode(b[len(idPrefix):], k[:])
	return schema.CallID(b[:])
}

func usualPrefix(id schema.CallID) bool {
	return len(id) == len(idPrefix)+keyText && strings.HasPrefix(string(id), idPrefix)
}

func compareKeys(a, b key) int { return bytes.Compare(a[:], b[:]) }

func (k key) less(other key) bool { return compareKeys(k, other) < 0 }

// increment sets k to the next key, which must exist.
func (k *key) increment() {
	for i := len(k) - 1; i >= 0; i-- {
		if k[i]++; k[i] != 0 {
			return
		}
	}
}

// decrement sets k to the previous key, which must exist.
func (k *key) decrement() {
	for i := len(k) - 1; i >= 0; i-- {
		if k[i]--; k[i] != math.MaxUint8 {
			return
		}
	}
}

func (k key) milli() int64 { return int64(binary.BigEndian.Uint64(k[:8]) >> 16) }

func (k key) slot() int64 { return slotOf(time.UnixMilli(k.milli())) }

// keyAt returns the lowest key of a time, rounded up to the millisecond.
func keyAt(t time.Time) (k key) {
	milli := t.Add(time.Millisecond - 1).UnixMilli()
	switch {
	case milli < 0:
	case milli >= 1<<48:
		return lastKey()
	default:
		binary.BigEndian.PutUint64(k[:8], uint64(milli)<<16)
	}
	return k
}

// slotStart returns the lowest key of a slot.
func slotStart(slot int64) key {
	return keyAt(time.Unix(slot*int64(slotTime/time.Second), 0))
}

func lastKey() (k key) {
	for i := range k {
		k[i] = math.MaxUint8
	}
	return k
}

func laterKey(a, b key) key {
	if a.less(b) {
		return b
	}
	return a
}
