package authn

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"strings"

	"github.com/callyard/callyard/internal/kit/base62"
)

// The format of a key: a prefix for secret scanners, 256 random bits in base 62, and a checksum,
// which distinguishes a truncated or mistyped key from an unknown one.
const (
	keyPrefix    = "cyk_"
	hashPrefix   = "sha256:"
	randomDigits = 43 // 256 bits
	sumDigits    = 6  // maximum for 32 bits
	keyLength    = len(keyPrefix) + randomDigits + sumDigits
)

// Generate creates a new API key. key is for the caller and is shown once; hash is for the
// configuration. It is safe for concurrent use.
func Generate() (key, hash string) {
	body := keyPrefix + base62.Random(randomDigits)
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
	return base62.Encode(uint64(crc32.ChecksumIEEE([]byte(body))), sumDigits)
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
