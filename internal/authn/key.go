package authn

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"math/big"
	"strings"
)

// The form of a key: a prefix that scanners for leaked secrets find, 256 random
// bits in base 62, and a checksum, so that a key that was cut or mistyped is
// told from an unknown one.
const (
	keyPrefix    = "cyk_"
	hashPrefix   = "sha256:"
	randomBytes  = 32
	randomDigits = 43 // the most that 32 bytes take in base 62
	sumDigits    = 6  // the most that 32 bits take
	keyLength    = len(keyPrefix) + randomDigits + sumDigits
)

const digits62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Generate makes a new API key. key is for the caller and is shown once; hash is
// what the configuration holds. It is safe for concurrent use.
func Generate() (key, hash string) {
	raw := make([]byte, randomBytes)
	if _, err := rand.Read(raw); err != nil {
		panic("authn: no randomness: " + err.Error()) // crypto/rand never fails on Linux; there is nothing to fall back to
	}
	body := keyPrefix + base62(new(big.Int).SetBytes(raw), randomDigits)
	key = body + checksum(body)
	return key, Hash(key)
}

// Hash returns the form of a key that the configuration holds: "sha256:" and
// 64 hex digits. Keys have 256 random bits, so a plain hash is as good as a
// slow one.
func Hash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hashPrefix + hex.EncodeToString(sum[:])
}

func checksum(body string) string {
	return base62(new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(body)))), sumDigits)
}

// base62 writes n with exactly width digits.
func base62(n *big.Int, width int) string {
	out := make([]byte, width)
	base, digit := big.NewInt(int64(len(digits62))), new(big.Int)
	for i := width - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		out[i] = digits62[digit.Int64()]
	}
	return string(out)
}

// damaged says that the text looks like a key of ours and cannot be one.
func damaged(key string) bool {
	if !strings.HasPrefix(key, keyPrefix) {
		return false
	}
	return len(key) != keyLength || checksum(key[:keyLength-sumDigits]) != key[keyLength-sumDigits:]
}
