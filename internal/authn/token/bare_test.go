package token

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/callyard/callyard/internal/authn/token/tokentest"
)

// BenchmarkBare is what no implementation can do without: one digest of a token, and one
// signature. On a loaded machine the others are read against it.
func BenchmarkBare(b *testing.B) {
	key := tokentest.NewKey(b, "key", jose.ES256)
	raw := []byte(sign(b, key, "ann"))
	b.Run("digest", func(b *testing.B) {
		for b.Loop() {
			_ = sha256.Sum256(raw)
		}
	})
	b.Run("ES256", func(b *testing.B) {
		private := key.Private.(*ecdsa.PrivateKey)
		sum := sha256.Sum256(raw)
		sig, err := ecdsa.SignASN1(rand.Reader, private, sum[:])
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if !ecdsa.VerifyASN1(&private.PublicKey, sum[:], sig) {
				b.Fatal("not verified")
			}
		}
	})
}
