package issued

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"strings"
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

const digits62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// IDOf returns the id of the key with that name. It is derived from the name, so that of several
// concurrent creators of the same name only one succeeds: they write the same row.
func IDOf(name string) string {
	sum := sha256.Sum256([]byte("callyard key\x00" + name))
	// 62^6 is less than 2^36, so two 64-bit numbers have no measurable bias.
	return base62(binary.BigEndian.Uint64(sum[:8]), idDigits/2) + base62(binary.BigEndian.Uint64(sum[8:16]), idDigits/2)
}

// newSecret creates a secret of the key.
func newSecret(id string) string {
	out := make([]byte, 0, length)
	out = append(append(append(out, prefix...), id...), '_')
	var raw [bodyDigits]byte
	for len(out) < sumAt {
		_, _ = rand.Read(raw[:]) // it never fails
		for _, b := range raw {
			if int(b) < 256/len(digits62)*len(digits62) && len(out) < sumAt { // larger values would make some digits more likely
				out = append(out, digits62[int(b)%len(digits62)])
			}
		}
	}
	return string(out) + checksum(string(out))
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
	var want [sumDigits]byte
	put62(want[:], uint64(crc32.ChecksumIEEE([]byte(secret[:sumAt]))))
	if string(want[:]) != secret[sumAt:] {
		return "", false
	}
	return secret[len(prefix) : headLength-1], true
}

func checksum(text string) string {
	return base62(uint64(crc32.ChecksumIEEE([]byte(text))), sumDigits)
}

// base62 returns the lowest digits of n.
func base62(n uint64, digits int) string {
	out := make([]byte, digits)
	put62(out, n)
	return string(out)
}

func put62(out []byte, n uint64) {
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = digits62[n%uint64(len(digits62))]
		n /= uint64(len(digits62))
	}
}
