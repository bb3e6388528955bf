package issued

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"strings"
)

// The form of a secret: cyk_ID_BODYSUM. The prefix is found by scanners for leaked secrets,
// the id tells whose it is without a look at the secret part, the body has 190 random bits
// in base 62, and the sum is the CRC-32 of what is before it, so that a secret that was cut
// or mistyped is told from an unknown one before anything is looked up.
const (
	prefix     = "cyk_"
	idDigits   = 12
	bodyDigits = 32
	sumDigits  = 6 // the most that 32 bits take
	headLength = len(prefix) + idDigits + 1
	sumAt      = headLength + bodyDigits
	length     = sumAt + sumDigits
)

const digits62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// IDOf returns the id of the key with that name. It follows from the name, so that of all
// who make a key with one name at once, one wins: they write the same row.
func IDOf(name string) string {
	sum := sha256.Sum256([]byte("callyard key\x00" + name))
	// 62^6 is less than 2^36: two numbers of 64 bits have no visible bias.
	return base62(binary.BigEndian.Uint64(sum[:8]), idDigits/2) + base62(binary.BigEndian.Uint64(sum[8:16]), idDigits/2)
}

// newSecret makes a secret of the key.
func newSecret(id string) string {
	out := make([]byte, 0, length)
	out = append(append(append(out, prefix...), id...), '_')
	var raw [bodyDigits]byte
	for len(out) < sumAt {
		if _, err := rand.Read(raw[:]); err != nil {
			panic("issued: no randomness: " + err.Error()) // crypto/rand never fails on Linux; there is nothing to fall back to
		}
		for _, b := range raw {
			if int(b) < 256/len(digits62)*len(digits62) && len(out) < sumAt { // others would make some digits likelier
				out = append(out, digits62[int(b)%len(digits62)])
			}
		}
	}
	return string(out) + checksum(string(out))
}

// Looks reports whether a credential has the form of a secret, whole or not, rather than
// that of a key of the configuration.
func Looks(credential string) bool {
	return len(credential) >= headLength && credential[headLength-1] == '_' && strings.HasPrefix(credential, prefix)
}

// parse returns the id of a secret; ok is false for one that is damaged.
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

// base62 writes the lowest digits of n.
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
