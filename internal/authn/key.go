package authn

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"math/big"
	"strings"
)

// The format of a key: a prefix for secret scanners, 256 random bits in base 62, and a checksum,
// which distinguishes a truncated or mistyped key from an unknown one.
const (
	keyPrefix    = "cyk_"
	hashPrefix   = "sha256:"
	randomBytes  = 32
	randomDigits = 43 // maximum for 32 bytes in base 62
	sumDigits    = 6  // maximum for 32 bits
	keyLength    = len(keyPrefix) + randomDigits + sumDigits
)

const digits62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Generate creates a new API key. key is for the caller and is shown once; hash is for the
// configuration. It is safe for concurrent use.
func Generate() (key, hash string) {
	raw := make([]byte, randomBytes)
	_, _ = rand.Read(raw) // it never fails
	body := keyPrefix + base62(new(big.Int).SetBytes(raw), randomDigits)
	key = body + checksum(body)
	return key, Hash(key)
}

// Hash returns the hash of a key for the configuration: "sha256:" and 64 hex digits. Keys have 256
// random bits, so a fast hash is sufficient.
func Hash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hashPrefix + hex.EncodeToString(sum[:])
}

func checksum(body string) string {
	return base62(new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(body)))), sumDigits)
}

// base62 encodes n with exactly width digits.
func base62(n *big.Int, width int) string {
	out := make([]byte, width)
	base, digit := big.NewInt(int64(len(digits62))), new(big.Int)
	for i := width - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		out[i] = digits62[digit.Int64()]
	}
	return string(out)
}

// damaged reports whether the text has the format of a key but an invalid checksum. A key that was made
// over the API has another format, with an underscore: it is intact, and only front doors know it.
func damaged(key string) bool {
	rest, ok := strings.CutPrefix(key, keyPrefix)
	if !ok || strings.Contains(rest, "_") {
		return false
	}
	return len(key) != keyLength || checksum(key[:keyLength-sumDigits]) != key[keyLength-sumDigits:]
}
