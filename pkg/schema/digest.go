package schema

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
)

const digestPrefix = "sha256:"

// Digest returns the SHA-256 of b as "sha256:" and 64 hex digits. It covers the exact bytes,
// because a digest of a decoded form can be equal for two different numbers.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	text := append(make([]byte, 0, len(digestPrefix)+2*len(sum)), digestPrefix...)
	return string(hex.AppendEncode(text, sum[:])) // appended in place, because this runs for each result
}

// Digest returns the digest of all definitions of a server. Lists are length-prefixed, so no
// two different sets have the same encoding.
func (d *Definitions) Digest() string {
	h := sha256.New()
	var n [8]byte
	for _, list := range [][]json.RawMessage{d.Tools, d.Resources, d.ResourceTemplates, d.Prompts} {
		binary.BigEndian.PutUint64(n[:], uint64(len(list)))
		h.Write(n[:])
		for _, raw := range list {
			binary.BigEndian.PutUint64(n[:], uint64(len(raw)))
			h.Write(n[:])
			h.Write(raw)
		}
	}
	if len(d.About) > 0 {
		binary.BigEndian.PutUint64(n[:], uint64(len(d.About)))
		h.Write(n[:])
		h.Write(d.About)
	}
	return digestPrefix + hex.EncodeToString(h.Sum(nil))
}
