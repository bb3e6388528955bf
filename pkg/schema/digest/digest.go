// Package digest names bytes by their SHA-256. It owns the one spelling of a
// digest ("sha256:" and 64 hex digits) and refuses to canonicalise: a digest
// here is of the exact bytes, because digests over a decoded form can call two
// different numbers the same.
package digest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"

	"github.com/callyard/callyard/pkg/schema"
)

const prefix = "sha256:"

// Of returns the digest of b.
func Of(b []byte) string {
	sum := sha256.Sum256(b)
	text := append(make([]byte, 0, len(prefix)+2*len(sum)), prefix...)
	return string(hex.AppendEncode(text, sum[:])) // there is one for each result
}

// OfDefinitions returns the digest of everything a server offers. Lists are
// length-prefixed, so no two different sets share an encoding.
func OfDefinitions(d *schema.Definitions) string {
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
	return prefix + hex.EncodeToString(h.Sum(nil))
}
