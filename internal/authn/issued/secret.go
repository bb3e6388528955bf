package issued

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"strings"

	"github.com/callyard/callyard/internal/kit/base62"
)

// The format of a secret is cyk_ID_BODYSUM. Secret scanners find the prefix. The id identifies the
// key without the secret part. The body has 190 random bits in base 62. The sum is the CRC-32 of
// the rest, so that a truncated or mistyped secret is detected before a lookup.
const (
	prefix     = "cyk_"
	idDigits   = 12
	bodyDigits = 32
	sumDigits  = 6 // maximum for 32 bits
	headLength = len(prefix) + idDigits + 1
	sumAt      = headLength + bodyDigits
	length     = sumAt + sumDigits
)

// IDOf returns the id of the key with that name. It is derived from the name, so that of several
// concurrent creators of the same name only one succeeds: they write the same row.
func IDOf(name string) string {
	sum := sha256.Sum256([]byte("callyard key\x00" + name))
	// 62^6 is less than 2^36, so two 64-bit numbers have no measurable bias.
	return base62.Encode(binary.BigEndian.Uint64(sum[:8]), idDigits/2) + base62.Encode(binary.BigEndian.Uint64(sum[8:16]), idDigits/2)
}

// newSecret creates a secret of the key.
func newSecret(id string) string {
	secret := prefix + id + "_" + base62.Random(bodyDigits)
	return secret + base62.Encode(uint64(crc32.ChecksumIEEE([]byte(secret))), sumDigits)
}

// Looks reports whether a credential has the format of a secret, also a damaged one, and not of a
// configured key.
func Looks(credential string) bool {
	return len(credential) >= headLength && credential[headLength-1] == '_' && strings.HasPrefix(credential, prefix)
}

// parse returns the id of a secret. ok is false if the secret is damaged.
func parse(secret string) (id string, ok bool) {
	if len(secret) != length || !Looks(secret) {
		return "", false
	}
	var sum [sumDigits]byte // this runs for each request
	if string(base62.Append(sum[:0], uint64(crc32.ChecksumIEEE([]byte(secret[:sumAt]))), sumDigits)) != secret[sumAt:] {
		return "", false
	}
	return secret[len(prefix) : headLength-1], true
}
